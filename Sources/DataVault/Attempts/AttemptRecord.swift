internal import FileLayer

/// What is remembered of the attempts to open a vault, over all objects and processes.
///
/// It is clear and unauthenticated: `docs/vault-format.md` says what that means. Moments are
/// milliseconds since 1970, which no number of the format makes overflow.
struct AttemptRecord: Sendable, Equatable {
  /// Wrong attempts since the last right one.
  var failureCount = 0
  /// No attempt is taken before this moment.
  var retryAtMilliseconds: Int?
  /// When the vault was last opened by one of its slots.
  var openedAtMilliseconds: Int?

  private static let maximumFailureCount = 1_000_000

  /// How long no attempt is taken; zero when one is.
  func wait(at now: UnixTime) -> Duration {
    guard let retryAtMilliseconds else { return .zero }
    return .milliseconds(max(0, retryAtMilliseconds - now.milliseconds))
  }

  /// Brings a moment that lies further ahead than these failures allow back to that: the clock
  /// has jumped, or somebody has written it.
  mutating func limitWait(at now: UnixTime) {
    guard let retryAtMilliseconds else { return }
    let latest = now.milliseconds + BackOff.seconds(afterFailures: failureCount) * 1000
    self.retryAtMilliseconds = min(retryAtMilliseconds, latest)
  }

  /// Counts a wrong attempt.
  mutating func recordFailure(at now: UnixTime) {
    failureCount = min(failureCount + 1, Self.maximumFailureCount)
    let seconds = BackOff.seconds(afterFailures: failureCount)
    retryAtMilliseconds = seconds > 0 ? now.milliseconds + seconds * 1000 : nil
  }

  /// The record after a right attempt: nothing of the failures remains.
  static func opened(at now: UnixTime) -> AttemptRecord {
    AttemptRecord(openedAtMilliseconds: now.milliseconds)
  }
}

extension UnixTime {
  /// Whole milliseconds since 1970, never negative.
  var milliseconds: Int { max(0, Int(nanoseconds / 1_000_000)) }
}
