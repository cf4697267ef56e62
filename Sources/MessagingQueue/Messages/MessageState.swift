/// A message of the log, with its state for each consumer of its channel.
public struct MessageState: Sendable, Hashable {
  /// The message.
  public let message: LogMessage
  /// The consumers of its channel, by name; empty for a channel without consumers.
  public let consumers: [ConsumerState]

  /// The state of a message for one consumer.
  public struct ConsumerState: Sendable, Hashable {
    /// The consumer.
    public let consumer: Consumer
    /// What the consumer gets.
    public let delivery: DeliveryState
    /// How often it was delivered.
    public let attemptCount: Int
    /// How often it is delivered before it becomes a dead letter; nil for no limit.
    public let maximumAttempts: Int?
    /// The failed attempts, the last 16 of them.
    public let failures: [DeliveryFailure]
  }
}

/// What a consumer gets of a message.
public enum DeliveryState: Sendable, Hashable {
  /// A receive gets it, after those that come before it.
  case ready
  /// Its delay ends in this time.
  case delayed(Duration)
  /// An earlier message with its ordering key comes first.
  case waiting
  /// It is leased for this time.
  case leased(Duration)
  /// Its time to live has ended, and a receive removes it.
  case expired
  /// It is a dead letter, for this reason.
  case deadLetter(reason: String)
  /// It is acknowledged.
  case acknowledged
}
