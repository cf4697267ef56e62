internal import GRDB

/// Where a live sequence begins, as its place was found in the log.
struct LogStart: Sendable {
  /// The first message comes after it; nil is the beginning.
  var cursor: Int64?
  /// Whether the reader is not told of what retention or a purge had removed when it began.
  var forgivesRemovals = false
  /// Of a reader that is also told of what comes and goes before its first read; nil for another.
  var account: ReadingAccount?
}

extension EngineDatabase {
  /// Finds the place of a live sequence, in the caller's snapshot.
  static func find(
    _ position: LogPosition, in channels: Set<Channel>, _ db: Database
  ) throws -> LogStart {
    switch position.kind {
    case .beginning:
      return LogStart(cursor: nil, forgivesRemovals: true)
    case .after(let timetoken):
      return LogStart(cursor: timetoken.rawValue)
    case .now:
      return LogStart(
        cursor: try highWater(db),
        account: ReadingAccount(
          aheadCount: 0, publishedCount: try publishedCount(channels, db)))
    case .newest(let count):
      let ids = try knownChannels(channels, db).map(\.id)
      let keys = try nearestKeys(in: ids, from: .max, order: .newestFirst, count: count, db)
      return LogStart(
        cursor: keys.last.map { $0.timetoken - 1 }, forgivesRemovals: true,
        account: ReadingAccount(
          aheadCount: keys.count, publishedCount: try publishedCount(channels, db)))
    }
  }

  /// How many messages were ever published to the channels; only its growth means something.
  static func publishedCount(_ channels: Set<Channel>, _ db: Database) throws -> Int {
    try knownChannels(channels, db).reduce(0) { $0 + $1.publishedCount }
  }
}
