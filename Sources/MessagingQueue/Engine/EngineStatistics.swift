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
    /// How long ago it was published, by the wall clock.
    public let oldestAge: Duration?
    /// Its consumers by name; none before the first receive.
    public let consumers: [ConsumerStatistics]
  }

  /// What one consumer has before it.
  public struct ConsumerStatistics: Sendable, Hashable {
    /// The consumer.
    public let consumer: Consumer
    /// After how many deliveries a message becomes a dead letter; nil for no limit.
    public internal(set) var maximumAttempts: Int?
    /// Messages that a receive would return now, those whose lease has ended included.
    ///
    /// One whose time to live is over counts until a receive comes to it.
    public internal(set) var readyCount = 0
    /// Messages that are leased to a receiver.
    public internal(set) var leasedCount = 0
    /// Messages that were published or released with a delay that is not over.
    public internal(set) var delayedCount = 0
    /// Messages that wait for another with their ordering key, as far as a receive has come to them.
    public internal(set) var waitingCount = 0
    /// Dead letters.
    public internal(set) var deadLetterCount = 0
    /// The oldest message that is ready, leased or waiting.
    public internal(set) var oldest: Timetoken?
    /// How long ago that was published, by the wall clock: a delay that is over is a part of it.
    public internal(set) var oldestAge: Duration?

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
