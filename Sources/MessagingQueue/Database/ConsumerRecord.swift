internal import GRDB

/// A consumer with what settling its deliveries needs to know, read once a transaction.
struct ConsumerRecord {
  let id: Int64
  let channelID: Int64
  let channel: Channel
  let consumer: Consumer
  /// Nil: a message is delivered until it is acknowledged.
  let mostAttempts: Int?
  /// Whether the log keeps what every consumer has acknowledged.
  let keepsAcknowledged: Bool
  /// Whether the channel has no other consumer.
  let isAlone: Bool

  private static let select = """
    SELECT consumer.id, channel_id, channel.name, consumer.name, most_attempts, keeps_acknowledged,
      (SELECT count(*) FROM consumer AS other WHERE other.channel_id = channel.id)
    FROM consumer JOIN channel ON channel.id = channel_id
    """

  static func find(_ id: Int64, _ db: Database) throws -> ConsumerRecord? {
    let statement = try db.cachedStatement(sql: select + " WHERE consumer.id = ?")
    return try Row.fetchOne(statement, arguments: [id]).map(ConsumerRecord.init)
  }

  static func find(_ consumer: Consumer, channelID: Int64, _ db: Database) throws -> ConsumerRecord?
  {
    let statement = try db.cachedStatement(
      sql: select + " WHERE channel_id = ? AND consumer.name = ?")
    return try Row.fetchOne(statement, arguments: [channelID, consumer.name])
      .map(ConsumerRecord.init)
  }

  private init(_ row: Row) {
    id = row[0]
    channelID = row[1]
    channel = Channel(stored: row[2])
    consumer = Consumer(stored: row[3])
    mostAttempts = row[4]
    keepsAcknowledged = row[5]
    isAlone = row[6] == 1
  }
}
