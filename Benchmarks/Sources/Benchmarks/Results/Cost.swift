import Glibc

/// The cost of some work.
struct Cost {
  /// Seconds of wall time.
  var wallSeconds = 0.0
  /// Seconds of processor time of this process, in all threads.
  var processorSeconds = 0.0

  /// The cost of this process until now.
  ///
  /// The difference of two values is the cost of the work between.
  private static var now: Cost {
    Cost(
      wallSeconds: seconds(CLOCK_MONOTONIC), processorSeconds: seconds(CLOCK_PROCESS_CPUTIME_ID))
  }

  /// Runs `body` and measures its cost.
  static func of(_ body: () throws -> Void) rethrows -> Cost {
    let start = now
    try body()
    return now - start
  }

  /// Runs `body` and measures its cost.
  static func of(_ body: () async throws -> Void) async rethrows -> Cost {
    let start = now
    try await body()
    return now - start
  }

  static func + (left: Cost, right: Cost) -> Cost {
    Cost(
      wallSeconds: left.wallSeconds + right.wallSeconds,
      processorSeconds: left.processorSeconds + right.processorSeconds)
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

  /// The ratio to another cost.
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
