/// What the engine's database holds, counted in one snapshot.
public struct EngineStatistics: Sendable, Hashable {
  /// One channel's share.
  public struct ChannelStatistics: Sendable, Hashable {
    /// The channel.
    public let channel: Channel
    /// Messages that a receive would return now, those whose lease has ended included.
    public let readyCount: Int
    /// Messages that are leased to a receiver.
    public let leasedCount: Int
    /// Messages that were released with a delay that is not over.
    public let delayedCount: Int
    /// The oldest message that is not acknowledged.
    public let oldest: Timetoken?

    /// Messages that are not acknowledged.
    public var messageCount: Int { readyCount + leasedCount + delayedCount }
  }

  /// Every channel that was ever published to, by name.
  public let channels: [ChannelStatistics]

  /// How many transactions the engine has committed to this database.
  public let commitNumber: Int64

  /// Messages that are not acknowledged, in all channels.
  public var messageCount: Int { channels.reduce(0) { $0 + $1.messageCount } }
}
