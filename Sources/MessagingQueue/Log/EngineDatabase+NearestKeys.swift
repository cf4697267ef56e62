internal import GRDB

/// Where a message is, without what it carries.
struct LogKey: Sendable {
  let timetoken: Int64
  let channelID: Int64
}

extension EngineDatabase {
  package static let selectKeysForward = """
    SELECT timetoken FROM message
    WHERE channel_id = ? AND timetoken > ? AND timetoken < ? ORDER BY timetoken LIMIT ?
    """

  package static let selectKeysBackward = """
    SELECT timetoken FROM message
    WHERE channel_id = ? AND timetoken < ? AND timetoken > ? ORDER BY timetoken DESC LIMIT ?
    """

  /// The `count` keys of several channels that come first from the cursor on, in order.
  ///
  /// SQLite would sort all that follows the cursor for `channel_id IN (…) ORDER BY timetoken LIMIT
  /// n`. Here each channel gives at most `count` keys out of its index, and none beyond the worst
  /// of those that are held already.
  static func nearestKeys(
    in channelIDs: [Int64], from cursor: Int64, order: HistoryOrder, count: Int, _ db: Database
  ) throws -> [LogKey] {
    let isForward = order == .oldestFirst
    let statement = try db.cachedStatement(
      sql: isForward ? selectKeysForward : selectKeysBackward)
    var nearest: [LogKey] = []
    for channelID in channelIDs {
      let isFull = nearest.count == count
      let bound = isFull ? nearest[count - 1].timetoken : isForward ? Int64.max : .min
      let found = try Int64.fetchAll(statement, arguments: [channelID, cursor, bound, count])
      if found.isEmpty { continue }
      nearest += found.map { LogKey(timetoken: $0, channelID: channelID) }
      nearest.sort {
        isForward ? $0.timetoken < $1.timetoken : $0.timetoken > $1.timetoken
      }
      nearest.removeLast(max(0, nearest.count - count))
    }
    return nearest
  }
}
