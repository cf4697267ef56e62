/// A channel and what its log holds.
public struct ChannelSummary: Sendable, Hashable {
  /// The channel.
  public let channel: Channel

  /// Messages in the log, whatever has become of their deliveries.
  public let messageCount: Int

  /// The oldest of them.
  public let oldest: Timetoken?

  /// The newest of them.
  public let newest: Timetoken?
}
