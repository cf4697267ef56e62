internal import GRDB

/// The growth of the log since a timetoken.
struct LogChanges: Sendable {
  var newest: [Channel: Timetoken]
  /// The greatest timetoken that was assigned in this snapshot.
  var highWater: Int64
}

extension EngineDatabase {
  package static let selectChangedChannels = """
    SELECT id, name FROM channel
    WHERE id IN (SELECT channel_id FROM message WHERE timetoken > ?)
    """

  /// The newest message of each channel after a timetoken.
  ///
  /// - Parameter ranges: ranges of messages to ignore. It is called inside the snapshot, so that it
  ///   includes every local message that the snapshot shows.
  static func changes(
    in channels: Set<Channel>?, after cursor: Int64, ignoring ranges: () -> [ClosedRange<Int64>],
    _ db: Database
  ) throws -> LogChanges {
    // The first read takes the snapshot.
    var changes = LogChanges(newest: [:], highWater: try highWater(db))
    guard changes.highWater > cursor else { return changes }
    let ignored = ranges()
    for (id, channel) in try changedChannels(channels, after: cursor, db) {
      changes.newest[channel] = try newest(of: id, after: cursor, ignoring: ignored, db)
    }
    return changes
  }

  private static func changedChannels(
    _ channels: Set<Channel>?, after cursor: Int64, _ db: Database
  ) throws -> [(id: Int64, channel: Channel)] {
    if let channels { return try knownChannels(channels, db).map { ($0.id, $0.channel) } }
    let statement = try db.cachedStatement(sql: selectChangedChannels)
    return try Row.fetchAll(statement, arguments: [cursor]).map {
      ($0[0], Channel(stored: $0[1]))
    }
  }

  /// Steps past whole ranges, not past each of their messages.
  private static func newest(
    of channelID: Int64, after cursor: Int64, ignoring ignored: [ClosedRange<Int64>],
    _ db: Database
  ) throws -> Timetoken? {
    var bound = Int64.max
    var ignored = ignored[...]
    while let found = try db.number(selectKeysBackward, channelID, bound, cursor, 1) {
      while let last = ignored.last, last.lowerBound > found { ignored.removeLast() }
      guard let last = ignored.last, last.contains(found) else {
        return Timetoken(unchecked: found)
      }
      bound = last.lowerBound
    }
    return nil
  }
}
