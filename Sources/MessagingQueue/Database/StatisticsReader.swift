internal import GRDB

/// Counts the messages of channels and consumers in one snapshot.
///
/// Channels store the sums of their logs. For a consumer, messages before its position are counted
/// in the index of its deliveries. Messages after it are counted in the channel's index, or as the
/// rest of the channel's sum, whichever costs less. So a deep queue of a consumer that has received
/// little costs no more than a shallow one.
struct StatisticsReader {
  let db: Database
  let bootNumber: Int64
  /// Nanoseconds of the boot clock.
  let bootNow: Int64
  let wallNow: Int64

  /// - Parameter only: the one channel to count; nil for all.
  func read(_ only: Channel? = nil) throws -> EngineStatistics {
    guard let commitNumber = try db.number("SELECT commit_number FROM engine") else {
      throw EngineError.engineRowMissing
    }
    let consumers = Dictionary(
      grouping: try Row.fetchAll(
        db, sql: "SELECT channel_id, id, name, most_attempts FROM consumer ORDER BY name")
    ) { $0[0] as Int64 }
    let channels = try Row.fetchAll(
      db, sql: Self.selectChannels, arguments: ["name": only?.name]
    ).map { row in
      let channel = try ChannelRow(row, db)
      return EngineStatistics.ChannelStatistics(
        channel: Channel(stored: row["name"]), messageCount: channel.messageCount,
        byteCount: row["byte_count"], oldest: channel.oldest.map(Timetoken.init(unchecked:)),
        oldestAge: age(of: channel.oldest),
        consumers: try consumers[channel.id, default: []].map { row in
          try ConsumerReader(
            reader: self, channel: channel, id: row[1],
            positions: EngineDatabase.positions(of: row[1], db)
          ).read(Consumer(stored: row[2]), maximumAttempts: row[3])
        })
    }
    return EngineStatistics(channels: channels, commitNumber: commitNumber)
  }

  private static let selectChannels = """
    SELECT id, name, message_count, byte_count,
      (SELECT min(timetoken) FROM message WHERE channel_id = channel.id) AS oldest
    FROM channel WHERE :name IS NULL OR name = :name ORDER BY name
    """

  /// How long ago a message was published, by the wall clock; zero if the clock has gone back
  /// since.
  fileprivate func age(of timetoken: Int64?) -> Duration? {
    timetoken.map { .nanoseconds(100) * max(wallNow - max($0, 0), 0) }
  }
}

private struct ChannelRow {
  let id: Int64
  let messageCount: Int
  let oldest: Int64?
  let priorities: [Priority]

  init(_ row: Row, _ db: Database) throws {
    id = row["id"]
    messageCount = row["message_count"]
    oldest = row["oldest"]
    priorities = try EngineDatabase.priorities(of: id, db)
  }
}

/// Counts the messages of one consumer.
private struct ConsumerReader {
  let reader: StatisticsReader
  let channel: ChannelRow
  let id: Int64
  /// Its positions, by priority.
  let positions: [Int: Int64]

  private var db: Database { reader.db }
  private var normal: Int64 { positions[Priority.normal.rawValue] ?? 0 }

  func read(
    _ consumer: Consumer, maximumAttempts: Int?
  ) throws -> EngineStatistics.ConsumerStatistics {
    let arguments: StatementArguments = [
      "consumer": id, "channel": channel.id, "boot": reader.bootNumber, "now": reader.bootNow,
      "wall": reader.wallNow,
    ]
    guard channel.messageCount > 0,
      let row = try Row.fetchOne(
        db.cachedStatement(sql: Self.countDeliveries), arguments: arguments)
    else {
      return EngineStatistics.ConsumerStatistics(
        consumer: consumer, maximumAttempts: maximumAttempts)
    }
    let aheadDelayed: Int = row["ahead_delayed"]
    let behindReady: Int = row["ready"]
    let behindDelayed: Int = row["delayed"]
    let oldest = try [row["oldest"] as Int64?, firstAhead()].compactMap { $0 }.min()
    return EngineStatistics.ConsumerStatistics(
      consumer: consumer, maximumAttempts: maximumAttempts,
      readyCount: try countAhead() &- aheadDelayed &+ behindReady,
      leasedCount: row["leased"], delayedCount: aheadDelayed + behindDelayed,
      blockedCount: row["blocked"], deadLetterCount: row["dead"],
      oldest: oldest.map(Timetoken.init(unchecked:)), oldestAge: reader.age(of: oldest))
  }

  private static let countDeliveries = """
    SELECT
      (SELECT count(*) FROM message WHERE channel_id = :channel AND due IS NOT NULL
        AND due > :wall AND timetoken > ifnull((SELECT timetoken FROM position
          WHERE consumer_id = :consumer AND priority = message.priority), 0)) AS ahead_delayed,
      (SELECT count(*) FROM delivery WHERE consumer_id = :consumer AND is_blocked = 0
        AND held_until IS NULL AND due IS NULL)
      + (SELECT count(*) FROM delivery WHERE consumer_id = :consumer AND held_until IS NOT NULL
        AND (held_boot, held_until) <= (:boot, :now))
      + (SELECT count(*) FROM delivery WHERE consumer_id = :consumer AND due <= :wall) AS ready,
      (SELECT count(*) FROM delivery WHERE consumer_id = :consumer AND held_until IS NOT NULL
        AND (held_boot, held_until) > (:boot, :now) AND lease IS NOT NULL) AS leased,
      (SELECT count(*) FROM delivery WHERE consumer_id = :consumer AND held_until IS NOT NULL
        AND (held_boot, held_until) > (:boot, :now) AND lease IS NULL)
      + (SELECT count(*) FROM delivery WHERE consumer_id = :consumer AND due > :wall) AS delayed,
      (SELECT count(*) FROM delivery WHERE consumer_id = :consumer AND is_blocked = 1) AS blocked,
      (SELECT count(*) FROM dead_letter WHERE consumer_id = :consumer) AS dead,
      (SELECT timetoken FROM delivery WHERE consumer_id = :consumer
        AND (due IS NULL OR due <= :wall) AND (lease IS NOT NULL OR held_until IS NULL
          OR (held_boot, held_until) <= (:boot, :now))
        ORDER BY timetoken LIMIT 1) AS oldest
    """

  // MARK: Beyond the positions

  private func countAhead() throws -> Int {
    var count = try countBeyondNormal()
    for priority in channel.priorities where priority != .normal {
      for (start, sign) in [(normal, -1), (positions[priority.rawValue] ?? 0, 1)] {
        let others = try db.number(
          """
          SELECT count(*) FROM message
          WHERE channel_id = ? AND priority = ? AND priority <> 4 AND timetoken > ?
          """, channel.id, priority.rawValue, start)
        count += sign * Int(others ?? 0)
      }
    }
    return count
  }

  /// Counts messages of any priority after the position of the normal priority.
  ///
  /// It counts them, or all before the position, in ever larger steps at both ends until one end is
  /// reached.
  private func countBeyondNormal() throws -> Int {
    var most = 1_000
    while true {
      let beyond = try count("timetoken > ?", atMost: most)
      if beyond < most { return beyond }
      let before = try count("timetoken <= ?", atMost: most)
      if before < most { return channel.messageCount &- before }
      most *= 8
    }
  }

  private func count(_ condition: String, atMost most: Int) throws -> Int {
    let count = try db.number(
      "SELECT count(*) FROM (SELECT 1 FROM message WHERE channel_id = ? AND \(condition) LIMIT ?)",
      channel.id, normal, most)
    return Int(count ?? 0)
  }

  /// The oldest message after the positions that is not delayed.
  private func firstAhead() throws -> Int64? {
    try channel.priorities.compactMap { priority in
      try db.number(
        """
        SELECT timetoken FROM message
        WHERE channel_id = ? AND priority = ? AND timetoken > ? AND (due IS NULL OR due <= ?)
          \(priority == .normal ? "" : "AND priority <> 4")
        ORDER BY timetoken LIMIT 1
        """, channel.id, priority.rawValue, positions[priority.rawValue] ?? 0, reader.wallNow)
    }.min()
  }
}
