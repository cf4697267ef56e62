internal import GRDB

extension EngineDatabase {
  /// The number of a channel that was published to or given settings.
  static func channelID(_ channel: Channel, _ db: Database) throws -> Int64? {
    try EngineStatement(db, "SELECT id FROM channel WHERE name = ?").number(channel.name)
  }

  /// The number of a channel, which is made if it is new.
  static func makeChannelID(_ channel: Channel, _ db: Database) throws -> Int64 {
    if let id = try channelID(channel, db) { return id }
    try db.cachedStatement(sql: "INSERT INTO channel (name) VALUES (?)")
      .execute(arguments: [channel.name])
    return db.lastInsertedRowID
  }
}
