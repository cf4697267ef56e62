internal import GRDB

/// Moves consumers forward past messages that are imported.
///
/// An existing consumer still gets messages that it has not passed on the way: each gets the row in
/// `delivery` that a receive would have added.
struct PositionTable {
  private struct Key: Hashable {
    let consumerID: Int64
    let priority: Int
  }

  private let db: Database
  private let now: Int64
  private var positions: [Key: Int64] = [:]
  private var changed: Set<Key> = []

  init(_ db: Database, now: Int64) {
    self.db = db
    self.now = now
  }

  mutating func advance(
    _ consumerID: Int64, channelID: Int64, _ priority: Priority, to timetoken: Timetoken
  ) throws {
    let key = Key(consumerID: consumerID, priority: priority.rawValue)
    let position = try positions[key] ?? stored(key)
    if position >= timetoken.rawValue { return }
    try db.cachedStatement(
      sql: """
        INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count, due,
          is_blocked)
        SELECT ?1, timetoken, priority, ordering_key, 0, iif(due > ?2, due, NULL), 0 FROM message
        WHERE channel_id = ?3 AND timetoken > ?4 AND timetoken < ?5
          AND priority = ?6 \(priority == .normal ? "" : "AND priority <> 4")
        """
    ).execute(arguments: [
      consumerID, now, channelID, position, timetoken.rawValue, priority.rawValue,
    ])
    positions[key] = timetoken.rawValue
    changed.insert(key)
  }

  mutating func store() throws {
    let replace = try db.cachedStatement(sql: "INSERT OR REPLACE INTO position VALUES (?, ?, ?)")
    for key in changed {
      try replace.execute(arguments: [key.consumerID, key.priority, positions[key]])
    }
    changed = []
  }

  private func stored(_ key: Key) throws -> Int64 {
    let select = try db.cachedStatement(
      sql: "SELECT timetoken FROM position WHERE consumer_id = ? AND priority = ?")
    return try Int64.fetchOne(select, arguments: [key.consumerID, key.priority]) ?? 0
  }
}
