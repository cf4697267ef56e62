internal import FileLayer
internal import GRDB

extension EngineDatabase {
  /// Counts what is there, in one snapshot; blocks no writer.
  ///
  /// The logs' sums are kept by their channels. What a consumer has before it is counted in an index,
  /// in time proportional to it.
  package func statistics() throws(EngineError) -> EngineStatistics {
    let times: StatementArguments = [
      "boot": bootNumber, "now": nanosecondsSinceBoot, "wall": WallTime.ticks(of: time.now),
    ]
    return try read(during: "counting") { db in
      guard
        let commitNumber = try Int64.fetchOne(db, sql: "SELECT commit_number FROM engine")
      else { throw EngineError.engineRowMissing }
      let consumers = Dictionary(
        grouping: try Row.fetchAll(db, sql: Self.countByConsumer, arguments: times)
      ) { $0["channel_id"] as Int64 }
      let channels = try Row.fetchAll(db, sql: Self.countByChannel).map { row in
        EngineStatistics.ChannelStatistics(
          channel: Channel(stored: row["name"]), messageCount: row["message_count"],
          byteCount: row["byte_count"],
          oldest: (row["oldest"] as Int64?).map(Timetoken.init(unchecked:)),
          consumers: consumers[row["id"], default: []].map(Self.consumer))
      }
      return EngineStatistics(channels: channels, commitNumber: commitNumber)
    }
  }

  private static let countByChannel = """
    SELECT id, name, message_count, byte_count,
      (SELECT min(timetoken) FROM message WHERE channel_id = channel.id) AS oldest
    FROM channel ORDER BY name
    """

  /// `ahead`: messages beyond the consumer's positions, whose priority is read from the index of the
  /// other priorities only.
  private static let countByConsumer = """
    SELECT channel_id, name,
      (SELECT count(*) FROM message WHERE channel_id = consumer.channel_id AND timetoken > normal)
      - (SELECT count(*) FROM message WHERE channel_id = consumer.channel_id AND priority <> 4
          AND timetoken > normal)
      + (SELECT count(*) FROM message WHERE channel_id = consumer.channel_id AND priority <> 4
          AND timetoken > ifnull((SELECT timetoken FROM position
            WHERE consumer_id = consumer.id AND priority = message.priority), 0)) AS ahead,
      (SELECT count(*) FROM message WHERE channel_id = consumer.channel_id AND due IS NOT NULL
        AND due > :wall AND timetoken > ifnull((SELECT timetoken FROM position
          WHERE consumer_id = consumer.id AND priority = message.priority), 0)) AS ahead_delayed,
      (SELECT count(*) FROM delivery WHERE consumer_id = consumer.id AND is_blocked = 0
        AND held_until IS NULL AND due IS NULL) AS ready,
      (SELECT count(*) FROM delivery WHERE consumer_id = consumer.id AND held_until IS NOT NULL
        AND (held_boot, held_until) <= (:boot, :now)) AS over,
      (SELECT count(*) FROM delivery WHERE consumer_id = consumer.id AND held_until IS NOT NULL
        AND (held_boot, held_until) > (:boot, :now) AND lease IS NOT NULL) AS leased,
      (SELECT count(*) FROM delivery WHERE consumer_id = consumer.id AND held_until IS NOT NULL
        AND (held_boot, held_until) > (:boot, :now) AND lease IS NULL) AS released,
      (SELECT count(*) FROM delivery WHERE consumer_id = consumer.id AND due > :wall) AS delayed,
      (SELECT count(*) FROM delivery WHERE consumer_id = consumer.id AND due <= :wall) AS due_now,
      (SELECT count(*) FROM delivery WHERE consumer_id = consumer.id AND is_blocked = 1) AS waiting,
      (SELECT count(*) FROM dead_letter WHERE consumer_id = consumer.id) AS dead
    FROM (SELECT *, ifnull((SELECT timetoken FROM position
      WHERE consumer_id = consumer.id AND priority = 4), 0) AS normal FROM consumer) AS consumer
    ORDER BY name
    """

  private static func consumer(_ row: Row) -> EngineStatistics.ConsumerStatistics {
    let ahead: Int = row["ahead"]
    let aheadDelayed: Int = row["ahead_delayed"]
    let ready: Int = row["ready"]
    let over: Int = row["over"]
    let dueNow: Int = row["due_now"]
    let released: Int = row["released"]
    let delayed: Int = row["delayed"]
    return EngineStatistics.ConsumerStatistics(
      consumer: Consumer(stored: row["name"]),
      readyCount: ahead - aheadDelayed + ready + over + dueNow,
      leasedCount: row["leased"], delayedCount: aheadDelayed + released + delayed,
      waitingCount: row["waiting"], deadLetterCount: row["dead"])
  }
}
