internal import GRDB

extension EngineDatabase {
  package static let selectSummaries = """
    SELECT name,
      (SELECT count(*) FROM message WHERE channel_id = channel.id),
      (SELECT min(timetoken) FROM message WHERE channel_id = channel.id),
      (SELECT max(timetoken) FROM message WHERE channel_id = channel.id)
    FROM channel ORDER BY name
    """

  /// Every channel that was ever published to, by name.
  static func channelSummaries(_ db: Database) throws -> [ChannelSummary] {
    try Row.fetchAll(db.cachedStatement(sql: selectSummaries)).map { row in
      let oldest: Int64? = row[2]
      let newest: Int64? = row[3]
      return ChannelSummary(
        channel: Channel(stored: row[0]), messageCount: row[1],
        oldest: oldest.map(Timetoken.init(unchecked:)),
        newest: newest.map(Timetoken.init(unchecked:)))
    }
  }
}
