/// A channel and what its log holds.
public struct ChannelSummary: Sendable, Hashable {
  /// The channel.
  public let channel: Channel

  /// Messages in the log, whatever has become of their deliveries.
  public let messageCount: Int

  /// The bytes of their payloads and headers.
  public let byteCount: Int

  /// The oldest of them.
  public let oldest: Timetoken?

  /// The newest of them.
  public let newest: Timetoken?

  /// The newest message that retention or a purge has removed: a reader of history with an older
  /// cursor may not have seen all.
  public let removedThrough: Timetoken?
}
