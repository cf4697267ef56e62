internal import Logging

/// Logs a failure that goes on: once a minute, and its end.
struct FailureLog {
  private static let interval = Duration.seconds(60)

  private let failure: String
  private let logger: Logger
  private var isFailing = false
  private var notedAt: ContinuousClock.Instant?

  /// - Parameter failure: what cannot be done.
  init(_ failure: String, _ logger: Logger) {
    self.failure = failure
    self.logger = logger
  }

  mutating func note(_ error: any Error) {
    isFailing = true
    let now = ContinuousClock.now
    if let notedAt, now - notedAt < Self.interval { return }
    notedAt = now
    logger.warning("\(failure): \(error)")
  }

  /// It works.
  mutating func end() {
    guard isFailing else { return }
    isFailing = false
    logger.notice("works again after a failure: \(failure)")
  }
}
