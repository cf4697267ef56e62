/// What the engine's database holds, counted in one snapshot.
public struct EngineStatistics: Sendable, Hashable {
  /// One channel's share.
  public struct ChannelStatistics: Sendable, Hashable {
    /// The channel.
    public let channel: Channel
    /// Messages in the log.
    public let messageCount: Int
    /// Bytes of their payloads and headers.
    public let byteCount: Int
    /// The oldest message in the log.
    public let oldest: Timetoken?
    /// Its consumers by name; none before the first receive.
    public let consumers: [ConsumerStatistics]
  }

  /// What one consumer has before it.
  public struct ConsumerStatistics: Sendable, Hashable {
    /// The consumer.
    public let consumer: Consumer
    /// Messages that a receive would return now, those whose lease has ended included.
    public let readyCount: Int
    /// Messages that are leased to a receiver.
    public let leasedCount: Int
    /// Messages that were published or released with a delay that is not over.
    public let delayedCount: Int
    /// Messages that wait for another with their ordering key, as far as a receive has come to them.
    public let waitingCount: Int
    /// Dead letters.
    public let deadLetterCount: Int

    /// Messages that are not acknowledged and not dead.
    public var messageCount: Int { readyCount + leasedCount + delayedCount + waitingCount }
  }

  /// Every channel that was ever published to, by name.
  public let channels: [ChannelStatistics]

  /// How many transactions the engine has committed to this database.
  public let commitNumber: Int64

  /// Messages in the logs of all channels.
  public var messageCount: Int { channels.reduce(0) { $0 + $1.messageCount } }
}
