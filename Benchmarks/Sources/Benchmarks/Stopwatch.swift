import Glibc

/// What a piece of work took.
struct Cost {
  /// Seconds on the wall clock.
  var wallSeconds: Double
  /// Seconds of processor time of this process, all threads.
  var processorSeconds: Double

  /// Measures `body`.
  static func of(_ body: () async throws -> Void) async rethrows -> Cost {
    let wall = seconds(CLOCK_MONOTONIC)
    let processor = seconds(CLOCK_PROCESS_CPUTIME_ID)
    try await body()
    return Cost(
      wallSeconds: seconds(CLOCK_MONOTONIC) - wall,
      processorSeconds: seconds(CLOCK_PROCESS_CPUTIME_ID) - processor)
  }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
