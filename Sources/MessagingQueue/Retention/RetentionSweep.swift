internal import GRDB

/// One transaction's part of a sweep through the oldest messages of a channel.
struct RetentionSweep {
  /// The result of the transaction.
  struct Step: Sendable {
    /// Messages looked at.
    var passedCount = 0
    /// Messages removed.
    var removedCount = 0
    /// Where to continue; nil at the end.
    var last: Timetoken?
  }

  private let channelID: Int64
  private let retention: Retention
  private let oldestKept: Int64
  private let db: Database
  /// Messages and bytes of the channel's log, without the messages that this step removes.
  private var messageCount: Int
  private var byteCount: Int

  /// - Parameter oldestKept: older messages are removed; 0 for no limit of age.
  /// - Returns: nil if the channel does not exist.
  init?(_ channelID: Int64, _ retention: Retention, oldestKept: Int64, _ db: Database) throws {
    self.channelID = channelID
    self.retention = retention
    self.oldestKept = oldestKept
    self.db = db
    let select = try db.cachedStatement(
      sql: "SELECT message_count, byte_count FROM channel WHERE id = ?")
    guard let row = try Row.fetchOne(select, arguments: [channelID]) else { return nil }
    messageCount = row[0]
    byteCount = row[1]
  }

  mutating func run(after start: Timetoken?, count: Int) throws -> Step {
    let rows = try Row.fetchAll(
      db.cachedStatement(sql: Self.selectOldest),
      arguments: [channelID, start?.rawValue ?? 0, min(try end(), lastOverLimits), count])
    var step = Step(passedCount: rows.count)
    var removal = MessageRemoval(db, channelID: channelID)
    for row in rows {
      let timetoken = Timetoken(unchecked: row[0])
      guard isOverLimits(timetoken) else {
        step.last = nil
        break
      }
      step.last = timetoken
      if retention.discardsUnacknowledged {
        try removal.retireFromConsumers(timetoken)
      } else if try removal.isNeeded(timetoken) {
        continue
      } else {
        try removal.retire(timetoken)
      }
      messageCount &-= 1
      byteCount &-= row[1]
      step.removedCount += 1
    }
    try removal.finish()
    if rows.count < count { step.last = nil }
    return step
  }

  private static let selectOldest = """
    SELECT timetoken, length(payload) + ifnull(length(headers), 0) FROM message
    WHERE channel_id = ? AND timetoken > ? AND timetoken <= ? ORDER BY timetoken LIMIT ?
    """

  /// The last message that can be removed.
  ///
  /// A consumer still needs the messages after its position. Looking at each of them would take the
  /// writers' time in every round. The position of normal priority (4) is the bound, because a
  /// receive moves it over the messages of every priority. Up to there,
  /// ``MessageRemoval/isNeeded(_:)`` decides about each message.
  private func end() throws -> Int64 {
    if retention.discardsUnacknowledged { return .max }
    let select = try db.cachedStatement(
      sql: """
        SELECT min(ifnull((SELECT timetoken FROM position
          WHERE consumer_id = consumer.id AND priority = 4), 0))
        FROM consumer WHERE channel_id = ?
        """)
    return try Int64.fetchOne(select, arguments: [channelID]) ?? .max
  }

  /// The last message that can be over the limits.
  private var lastOverLimits: Int64 {
    let canReachAny = retention.maximumMessageCount != nil || retention.maximumByteCount != nil
    return canReachAny ? .max : oldestKept - 1
  }

  private func isOverLimits(_ timetoken: Timetoken) -> Bool {
    timetoken.rawValue < oldestKept
      || retention.maximumMessageCount.map { messageCount > $0 } ?? false
      || retention.maximumByteCount.map { byteCount > $0 } ?? false
  }
}
