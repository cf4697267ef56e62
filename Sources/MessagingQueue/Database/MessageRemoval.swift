internal import GRDB

/// Removes messages from a channel's log and from its sums.
///
/// The channel records how far retention and purges have removed messages, so that a reader of the
/// log that has not come so far gets an error. It records nothing about messages that every
/// consumer has settled.
struct MessageRemoval {
  private let db: Database
  private let channelID: Int64
  /// Messages that were removed and still count in the channel's sums.
  private(set) var messageCount = 0
  private var byteCount = 0
  private var removedThrough: Int64 = 0

  init(_ db: Database, channelID: Int64) {
    self.db = db
    self.channelID = channelID
  }

  mutating func remove(_ timetoken: Timetoken) throws {
    let delete = try db.cachedStatement(
      sql: """
        DELETE FROM message WHERE timetoken = ?
        RETURNING length(payload) + ifnull(length(headers), 0)
        """)
    guard let size = try Int.fetchOne(delete, arguments: [timetoken.rawValue]) else { return }
    messageCount += 1
    byteCount += size
  }

  mutating func remove(_ timetokens: TimetokenList) throws {
    let sum = try db.cachedStatement(
      sql: """
        SELECT count(*), ifnull(sum(length(payload) + ifnull(length(headers), 0)), 0) FROM message
        WHERE timetoken IN (SELECT value FROM json_each(?))
        """)
    guard let row = try Row.fetchOne(sum, arguments: [timetokens.json]) else { return }
    messageCount += row[0] as Int
    byteCount += row[1] as Int
    try EngineStatement(
      db, "DELETE FROM message WHERE timetoken IN (SELECT value FROM json_each(?))"
    ).execute(timetokens.json)
  }

  /// Removes a message unless a consumer of its channel still needs it: it lies after its position,
  /// is leased to it, or among its dead letters.
  mutating func removeUnlessNeeded(_ timetoken: Timetoken) throws {
    if try !isNeeded(timetoken) { try remove(timetoken) }
  }

  /// Removes a message for its age or for a limit of its channel, and records that.
  mutating func retire(_ timetoken: Timetoken) throws {
    try remove(timetoken)
    removedThrough = max(removedThrough, timetoken.rawValue)
  }

  /// Removes a message as ``retire(_:)`` does, also from consumers that have not settled it.
  mutating func retireFromConsumers(_ timetoken: Timetoken) throws {
    let consumers = try Int64.fetchAll(
      db.cachedStatement(sql: "SELECT id FROM consumer WHERE channel_id = ?"),
      arguments: [channelID])
    for id in consumers {
      guard let consumer = try ConsumerRecord.find(id, db) else { continue }
      try DeliveryTable(consumer, db).forget(timetoken)
    }
    try retire(timetoken)
  }

  /// Writes the channel's row; call it in the same transaction.
  mutating func finish() throws {
    if messageCount == 0 { return }
    try EngineStatement(
      db,
      """
      UPDATE channel SET message_count = message_count - ?, byte_count = byte_count - ?,
        removed_through = max(removed_through, ?)
      WHERE id = ?
      """
    ).execute(messageCount, byteCount, removedThrough, channelID)
    (messageCount, byteCount) = (0, 0)
  }

  func isNeeded(_ timetoken: Timetoken) throws -> Bool {
    let select = try db.cachedStatement(
      sql: """
        SELECT EXISTS (
          SELECT 1 FROM consumer JOIN message ON message.timetoken = :timetoken
          WHERE consumer.channel_id = :channel AND (
            message.timetoken > ifnull((SELECT timetoken FROM position
              WHERE consumer_id = consumer.id AND priority = message.priority), 0)
            OR EXISTS (SELECT 1 FROM delivery
              WHERE consumer_id = consumer.id AND timetoken = :timetoken)
            OR EXISTS (SELECT 1 FROM dead_letter
              WHERE consumer_id = consumer.id AND timetoken = :timetoken)))
        """)
    return try Bool.fetchOne(
      select, arguments: ["timetoken": timetoken.rawValue, "channel": channelID]) ?? false
  }
}
