/// When a delivery is tried, and when it becomes a dead letter.
///
/// A stock SDK refuses a body whose time differs by more than 300 seconds from its own clock, so no attempt goes beyond
/// 290.
enum WebhookSchedule {
  /// How old a delivery is at most when an attempt ends.
  static let lifetime = Duration.seconds(290)
  /// How long an attempt takes at most.
  static let attemptTime = Duration.seconds(10)
  /// The most attempts, whatever the clock says.
  static let attemptCount = 20
  private static let longestDelay = 60

  /// Whether an attempt can begin.
  ///
  /// - Parameter age: since the body was made.
  static func allowsAttempt(atAge age: Duration) -> Bool { age + attemptTime <= lifetime }

  /// How long after a failed attempt the next one begins: 1, 2, 4 and so on up to 60 seconds; nil if the delivery is a
  /// dead letter now.
  ///
  /// - Parameter attempt: the number of the failed one, from 1.
  static func delay(afterAttempt attempt: Int, atAge age: Duration) -> Duration? {
    let delay = Duration.seconds(min(longestDelay, 1 << min(max(attempt, 1) - 1, 6)))
    return attempt < attemptCount && allowsAttempt(atAge: age + delay) ? delay : nil
  }
}
