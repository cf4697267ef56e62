/// A message that a consumer does not get any more, until it is given back by
/// ``MessagingEngine/redrive(_:of:for:)`` or removed.
public struct DeadLetter: Sendable, Hashable {
  /// The message's place in the log.
  public let timetoken: Timetoken
  /// Where it was published.
  public let channel: Channel
  /// Whose dead letter it is; other consumers get the message as ever.
  public let consumer: Consumer
  /// The bytes that were published.
  public let payload: [UInt8]
  /// The headers that were published.
  public let headers: [String: String]
  /// How often it was delivered.
  public let attemptCount: Int
  /// Why it died: what the last receiver said, or what happened.
  public let reason: String
  /// When it died, by the wall clock, in units of 100 ns since 1970.
  public let died: Int64
  /// The attempts that failed, the last 16 of them.
  public let failures: [DeliveryFailure]
}
