internal import GRDB

extension OverflowPolicy {
  /// Moves the cursor to before the newest messages that are kept, and says how many it passed.
  func skip(_ query: inout LogQuery, _ db: Database) throws -> Int {
    guard let newestCount else { return 0 }
    let ids = try EngineDatabase.knownChannels(query.channels, db).map(\.id)
    let newest = try EngineDatabase.nearestKeys(
      in: ids, from: .max, order: .newestFirst, count: newestCount, db)
    guard newest.count == newestCount, let oldest = newest.last?.timetoken else { return 0 }
    let cursor = query.cursor ?? .min
    guard oldest > cursor else { return 0 }
    let passedOverCount = try EngineDatabase.messageCount(
      of: query.channels, after: cursor, before: oldest, db)
    if passedOverCount > 0 { query.cursor = oldest - 1 }
    return passedOverCount
  }
}
