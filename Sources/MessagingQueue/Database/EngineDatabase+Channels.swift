internal import GRDB

extension EngineDatabase {
  /// The number of a channel, which is made if it is asked for and new.
  static func channelID(_ channel: Channel, making: Bool, _ db: Database) throws -> Int64? {
    let select = try db.cachedStatement(sql: "SELECT id FROM channel WHERE name = ?")
    if let id = try Int64.fetchOne(select, arguments: [channel.name]) { return id }
    guard making else { return nil }
    try db.cachedStatement(sql: "INSERT INTO channel (name) VALUES (?)")
      .execute(arguments: [channel.name])
    return db.lastInsertedRowID
  }
}
