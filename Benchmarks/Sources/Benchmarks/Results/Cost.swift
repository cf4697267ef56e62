import Glibc

/// What a piece of work took.
struct Cost {
  /// Seconds on the wall clock.
  var wallSeconds: Double
  /// Seconds of processor time of this process, all threads.
  var processorSeconds: Double

  /// The costs so far of this process, to be subtracted.
  private static var now: Cost {
    Cost(
      wallSeconds: seconds(CLOCK_MONOTONIC), processorSeconds: seconds(CLOCK_PROCESS_CPUTIME_ID))
  }

  /// Measures `body`.
  static func of(_ body: () throws -> Void) rethrows -> Cost {
    let start = now
    try body()
    return now - start
  }

  /// Measures `body`.
  static func of(_ body: () async throws -> Void) async rethrows -> Cost {
    let start = now
    try await body()
    return now - start
  }

  static func - (left: Cost, right: Cost) -> Cost {
    Cost(
      wallSeconds: left.wallSeconds - right.wallSeconds,
      processorSeconds: left.processorSeconds - right.processorSeconds)
  }

  static func / (left: Cost, right: Double) -> Cost {
    Cost(
      wallSeconds: left.wallSeconds / right, processorSeconds: left.processorSeconds / right)
  }

  /// As multiples of another's.
  func relative(to other: Cost) -> Cost {
    Cost(
      wallSeconds: wallSeconds / other.wallSeconds,
      processorSeconds: processorSeconds / other.processorSeconds)
  }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
