internal import GRDB

/// The place in the log where a live sequence begins.
struct LogStart: Sendable {
  /// The first message comes after it; nil is the beginning.
  var cursor: Int64?
  /// Whether the reader gets no error for removals before it began.
  var ignoresEarlierRemovals = false
  /// For a reader that must also notice messages that come and go before its first read; nil for
  /// others.
  var counter: MissedMessageCounter?
}

extension EngineDatabase {
  /// Finds the place of a live sequence, in the caller's snapshot.
  static func find(
    _ position: LogPosition, in channels: Set<Channel>, _ db: Database
  ) throws -> LogStart {
    switch position.kind {
    case .beginning:
      return LogStart(cursor: nil, ignoresEarlierRemovals: true)
    case .after(let timetoken):
      return LogStart(cursor: timetoken.rawValue)
    case .now:
      return LogStart(
        cursor: try highWater(db),
        counter: MissedMessageCounter(
          aheadCount: 0, publishedCounts: try publishedCounts(channels, db)))
    case .newest(let count):
      let ids = try knownChannels(channels, db).map(\.id)
      let keys = try nearestKeys(in: ids, from: .max, order: .newestFirst, count: count, db)
      return LogStart(
        cursor: keys.last.map { $0.timetoken - 1 }, ignoresEarlierRemovals: true,
        counter: MissedMessageCounter(
          aheadCount: keys.count, publishedCounts: try publishedCounts(channels, db)))
    }
  }

  /// How many messages were ever published to the channels, by their numbers; only the growth has a meaning.
  static func publishedCounts(_ channels: Set<Channel>, _ db: Database) throws -> [Int64: Int] {
    Dictionary(
      uniqueKeysWithValues: try knownChannels(channels, db).map { ($0.id, $0.publishedCount) })
  }
}

extension OverflowPolicy {
  /// Moves the cursor to the newest messages that are kept, and returns how many it skipped.
  func skip(_ query: inout LogQuery, _ db: Database) throws -> Int {
    guard let newestCount else { return 0 }
    let ids = try EngineDatabase.knownChannels(query.channels, db).map(\.id)
    let newest = try EngineDatabase.nearestKeys(
      in: ids, from: .max, order: .newestFirst, count: newestCount, db)
    guard newest.count == newestCount, let oldest = newest.last?.timetoken else { return 0 }
    let cursor = query.cursor ?? .min
    guard oldest > cursor else { return 0 }
    let skippedCount = try EngineDatabase.messageCount(
      of: query.channels, after: cursor, before: oldest, db)
    if skippedCount > 0 { query.cursor = oldest - 1 }
    return skippedCount
  }
}
