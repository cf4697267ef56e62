internal import GRDB

extension EngineDatabase {
  /// Counts what is there, in one snapshot; takes time in proportion to it and blocks no writer.
  package func statistics() throws(EngineError) -> EngineStatistics {
    let now = nanosecondsSinceBoot
    return try translatingErrors(during: "counting") {
      try pool.read { db in
        guard
          let commitNumber = try Int64.fetchOne(db, sql: "SELECT commit_number FROM engine")
        else { throw EngineError.engineRowMissing }
        let rows = try Row.fetchAll(db, sql: Self.countByChannel, arguments: [bootNumber, now])
        return EngineStatistics(channels: rows.map(Self.channel), commitNumber: commitNumber)
      }
    }
  }

  private static let countByChannel = """
    SELECT name, count(delivery.timetoken), count(lease) FILTER (WHERE is_held),
      count(*) FILTER (WHERE is_held AND lease IS NULL), min(delivery.timetoken)
    FROM channel LEFT JOIN (
      SELECT *, held_until IS NOT NULL AND (held_boot, held_until) > (?, ?) AS is_held FROM delivery
    ) AS delivery ON delivery.channel_id = channel.id
    GROUP BY channel.id ORDER BY name
    """

  private static func channel(_ row: Row) -> EngineStatistics.ChannelStatistics {
    let messageCount: Int = row[1]
    let leasedCount: Int = row[2]
    let delayedCount: Int = row[3]
    let oldest: Int64? = row[4]
    return EngineStatistics.ChannelStatistics(
      channel: Channel(stored: row[0]), readyCount: messageCount - leasedCount - delayedCount,
      leasedCount: leasedCount, delayedCount: delayedCount,
      oldest: oldest.map(Timetoken.init(unchecked:)))
  }
}
