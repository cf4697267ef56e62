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
    let size = try db.number(
      """
      DELETE FROM message WHERE timetoken = ?
      RETURNING length(payload) + ifnull(length(headers), 0)
      """, timetoken.rawValue)
    guard let size else { return }
    messageCount += 1
    byteCount += Int(size)
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
    try db.run(
      "DELETE FROM message WHERE timetoken IN (SELECT value FROM json_each(?))", timetokens.json)
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
    try takeFromConsumers(timetoken)
    try retire(timetoken)
  }

  /// Removes a message as if every consumer had settled it.
  mutating func cancel(_ timetoken: Timetoken) throws {
    try takeFromConsumers(timetoken)
    try remove(timetoken)
  }

  private func takeFromConsumers(_ timetoken: Timetoken) throws {
    let consumers = try Int64.fetchAll(
      db.cachedStatement(sql: "SELECT id FROM consumer WHERE channel_id = ?"),
      arguments: [channelID])
    for id in consumers { try DeliveryTable(consumerID: id, db: db).forget(timetoken) }
  }

  /// Writes the channel's row; call it in the same transaction.
  mutating func finish() throws {
    if messageCount == 0 { return }
    try db.run(
      """
      UPDATE channel SET message_count = message_count - ?, byte_count = byte_count - ?,
        removed_through = max(removed_through, ?)
      WHERE id = ?
      """, messageCount, byteCount, removedThrough, channelID)
    (messageCount, byteCount) = (0, 0)
  }

  func isNeeded(_ timetoken: Timetoken) throws -> Bool {
    try db.number(
      """
      SELECT 1 FROM consumer JOIN message ON message.timetoken = ?1
      WHERE consumer.channel_id = ?2 AND (
        message.timetoken > ifnull((SELECT timetoken FROM position
          WHERE consumer_id = consumer.id AND priority = message.priority), 0)
        OR EXISTS (SELECT 1 FROM delivery WHERE consumer_id = consumer.id AND timetoken = ?1)
        OR EXISTS (SELECT 1 FROM dead_letter WHERE consumer_id = consumer.id AND timetoken = ?1))
      LIMIT 1
      """, timetoken.rawValue, channelID) != nil
  }
}
