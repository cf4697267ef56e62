/// A message as a reader of the log sees it: to look at, leased to nobody.
public struct LogMessage: Sendable, Hashable {
  /// The message's place in the log, and the cursor to go on from.
  public let timetoken: Timetoken

  /// Where it was published.
  public let channel: Channel

  /// The bytes that were published.
  public let payload: [UInt8]

  /// The headers that were published.
  public let headers: [String: String]

  /// Which of the messages that are ready a receiver gets first; the log has them in their order.
  public let priority: Priority

  /// The key whose messages receivers get one after the other.
  public let orderingKey: String?

  /// From when on receivers may have it, by the wall clock, in units of 100 ns since 1970; nil for one
  /// that was published without a delay.
  public let due: Int64?

  /// From when on no receiver gets it, likewise; nil for never.
  public let expires: Int64?

  /// How many messages of the log were passed over right before this one.
  ///
  /// Always 0, except in a live sequence with ``OverflowPolicy/skip(toNewest:)``.
  public internal(set) var passedOverCount: Int = 0
}
