package import GRDB

extension EngineDatabase {
  /// Removes up to `count` of a channel's messages, the oldest first, from the log and from every
  /// consumer, whoever has them in hand.
  ///
  /// - Parameter end: the first message to be kept; nil for none.
  /// - Returns: How many there were; fewer than `count` at the end.
  package func purge(
    _ channel: Channel, before end: Timetoken?, count: Int, in db: Database
  ) throws -> Int {
    guard let channelID = try Self.channelID(channel, db) else { return 0 }
    let timetokens = try Int64.fetchAll(
      db.cachedStatement(
        sql: """
          SELECT timetoken FROM message WHERE channel_id = ? AND timetoken < ?
          ORDER BY timetoken LIMIT ?
          """), arguments: [channelID, end?.rawValue ?? .max, count]
    ).map(Timetoken.init(unchecked:))
    var removal = MessageRemoval(db, channelID: channelID)
    for timetoken in timetokens { try removal.retireFromConsumers(timetoken) }
    try removal.finish()
    tallies?.note { $0.purged += timetokens.count }
    return timetokens.count
  }
}
