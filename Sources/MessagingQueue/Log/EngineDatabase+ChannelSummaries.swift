internal import GRDB

extension EngineDatabase {
  package static let selectSummaries = """
    SELECT name, message_count,
      (SELECT min(timetoken) FROM message WHERE channel_id = channel.id),
      (SELECT max(timetoken) FROM message WHERE channel_id = channel.id),
      byte_count, removed_through
    FROM channel ORDER BY name
    """

  /// Every channel that was ever published to, by name.
  static func channelSummaries(_ db: Database) throws -> [ChannelSummary] {
    try Row.fetchAll(db.cachedStatement(sql: selectSummaries)).map { row in
      let oldest: Int64? = row[2]
      let newest: Int64? = row[3]
      let removed: Int64 = row[5]
      return ChannelSummary(
        channel: Channel(stored: row[0]), messageCount: row[1], byteCount: row[4],
        oldest: oldest.map(Timetoken.init(unchecked:)),
        newest: newest.map(Timetoken.init(unchecked:)),
        removedThrough: removed == 0 ? nil : Timetoken(unchecked: removed))
    }
  }
}
