/// The delay before a failed job is tried again: it grows with each attempt, to a bound.
///
/// It is pure: equal arguments give equal delays.
public struct Backoff: Sendable, Hashable {
  /// The delay after the first attempt, without jitter.
  ///
  /// Default: 10 seconds.
  public var first: Duration = .seconds(10)

  /// The factor from one attempt to the next, at least 1.
  ///
  /// Default: 2.
  public var factor: Double = 2

  /// The longest delay.
  ///
  /// Default: 6 hours.
  public var maximum: Duration = .seconds(6 * 3600)

  /// The part of a delay by which chance shortens it, 0 to 1, so that jobs that failed together do not
  /// return together.
  ///
  /// Default: 0.1.
  public var jitter: Double = 0.1

  /// Makes a back-off with the defaults.
  public init() {}

  /// The delay after a failed attempt, never above ``maximum``.
  ///
  /// - Parameters:
  ///   - attempt: its number; 1 is the first.
  ///   - random: a number from 0 to 1; 0 gives the delay without jitter.
  public func delay(afterAttempt attempt: Int, random: Double) -> Duration {
    let limit = max(maximum / .seconds(1), 0)
    var seconds = min(max(first / .seconds(1), 0), limit)
    // In steps: a power of a large attempt would be infinite.
    for _ in 1..<max(min(attempt, 10_000), 1) where seconds < limit { seconds *= max(factor, 1) }
    let kept = 1 - min(max(jitter, 0), 1) * min(max(random, 0), 1)
    return .seconds(min(seconds, limit) * kept)
  }
}
