/// A message as a reader of the log sees it: to look at, leased to nobody.
public struct LogMessage: Sendable, Hashable {
  /// The message's place in the log, and the cursor to go on from.
  public let timetoken: Timetoken

  /// Where it was published.
  public let channel: Channel

  /// The bytes that were published.
  public let payload: [UInt8]

  /// How many messages of the log were passed over right before this one.
  ///
  /// Always 0, except in a live sequence with ``OverflowPolicy/skip(toNewest:)``.
  public internal(set) var passedOverCount: Int = 0
}
