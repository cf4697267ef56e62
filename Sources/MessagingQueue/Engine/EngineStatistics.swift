/// The contents of the engine's database, counted in one snapshot.
public struct EngineStatistics: Sendable, Hashable {
  /// The part of one channel.
  public struct ChannelStatistics: Sendable, Hashable {
    /// The channel.
    public let channel: Channel
    /// Messages in the log.
    public let messageCount: Int
    /// Bytes of their payloads and headers.
    public let byteCount: Int
    /// The oldest message in the log.
    public let oldest: Timetoken?
    /// How long ago the oldest message was published, by the wall clock.
    public let oldestAge: Duration?
    /// The channel's consumers by name; none before the first receive.
    public let consumers: [ConsumerStatistics]
  }

  /// The part of one consumer.
  public struct ConsumerStatistics: Sendable, Hashable {
    /// The consumer.
    public let consumer: Consumer
    /// After how many deliveries a message becomes a dead letter; nil for no limit.
    public internal(set) var maximumAttempts: Int?
    /// Messages that a receive would return now, including those whose lease has ended.
    ///
    /// A message whose time to live has ended counts until a receive reaches it.
    public internal(set) var readyCount = 0
    /// Messages that are leased to a receiver.
    public internal(set) var leasedCount = 0
    /// Messages whose delay, from publishing or from a release, has not ended.
    public internal(set) var delayedCount = 0
    /// Messages that wait for another with the same ordering key, as far as receives have read the
    /// log.
    public internal(set) var blockedCount = 0
    /// Dead letters.
    public internal(set) var deadLetterCount = 0
    /// The oldest message that is ready, leased or blocked.
    public internal(set) var oldest: Timetoken?
    /// How long ago that message was published, by the wall clock; this includes a delay that has
    /// ended.
    public internal(set) var oldestAge: Duration?

    /// Messages that are neither acknowledged nor dead letters.
    public var messageCount: Int { readyCount + leasedCount + delayedCount + blockedCount }
  }

  /// Every channel that was ever published to, by name.
  public let channels: [ChannelStatistics]

  /// How many transactions the engine has committed to this database.
  public let commitNumber: Int64

  /// Messages in the logs of all channels.
  public var messageCount: Int { channels.reduce(0) { $0 &+ $1.messageCount } }
}
