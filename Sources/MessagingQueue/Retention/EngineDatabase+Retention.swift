internal import FileLayer
package import GRDB

extension EngineDatabase {
  /// Sets how long a channel keeps messages; creates a channel that does not exist.
  ///
  /// The setting applies from the next sweep and the next acknowledgement on.
  static func setRetention(_ retention: Retention, of channel: Channel, _ db: Database) throws {
    try db.cachedStatement(
      sql: """
        UPDATE channel SET keeps_acknowledged = ?, discards_unacknowledged = ?, longest_age = ?,
          most_messages = ?, most_bytes = ?
        WHERE id = ?
        """
    ).execute(arguments: [
      retention.keepsAcknowledged, retention.discardsUnacknowledged,
      retention.maximumAge.map { WallTime.ticks(of: $0) }, retention.maximumMessageCount,
      retention.maximumByteCount, makeChannelID(channel, db),
    ])
  }

  /// The retention of a channel; that of a new one if the channel does not exist.
  static func retention(of channel: Channel, _ db: Database) throws -> Retention {
    let select = try db.cachedStatement(
      sql: "SELECT \(Retention.columns) FROM channel WHERE name = ?")
    return try Row.fetchOne(select, arguments: [channel.name]).map(Retention.init)
      ?? Retention(ofNew: channel)
  }

  /// Looks at up to `count` of a channel's oldest messages after `start`, and removes those over
  /// its limits.
  ///
  /// - Returns: where to continue; nil after all messages over the limits.
  func sweep(
    _ channel: Channel, after start: Timetoken?, count: Int, in db: Database
  ) throws -> RetentionSweep.Step {
    let retention = try Self.retention(of: channel, db)
    guard retention.hasLimits, let channelID = try Self.channelID(channel, db) else {
      return RetentionSweep.Step()
    }
    let now = WallTime.ticks(of: time.now)
    let oldestKept = retention.maximumAge.map { now - max(WallTime.ticks(of: $0), 0) }
    guard
      var sweep = try RetentionSweep(channelID, retention, oldestKept: oldestKept ?? 0, db)
    else { return RetentionSweep.Step() }
    let step = try sweep.run(after: start, count: count)
    commitCounter?.note { $0.retired += step.removedCount }
    return step
  }

  /// Channels that have limits.
  static func limitedChannels(_ db: Database) throws -> [Channel] {
    try String.fetchAll(
      db.cachedStatement(
        sql: """
          SELECT name FROM channel
          WHERE longest_age IS NOT NULL OR most_messages IS NOT NULL OR most_bytes IS NOT NULL
          ORDER BY name
          """)
    ).map(Channel.init(stored:))
  }
}

extension Retention {
  /// The columns of a channel that ``init(_:)`` reads.
  static let columns = """
    keeps_acknowledged, discards_unacknowledged, longest_age, most_messages, most_bytes
    """

  /// The retention of a channel that is added: one of an application keeps acknowledged messages.
  init(ofNew channel: Channel) {
    keepsAcknowledged = channel.isOfApplication
  }

  init(_ row: Row) {
    keepsAcknowledged = row["keeps_acknowledged"]
    discardsUnacknowledged = row["discards_unacknowledged"]
    maximumAge = (row["longest_age"] as Int64?).map { .nanoseconds(100) * $0 }
    maximumMessageCount = row["most_messages"]
    maximumByteCount = row["most_bytes"]
  }
}

extension EngineDatabase {
  /// Free pages to keep for new messages, unless a tenth of the file is more.
  private static let sparePageCount = 1024

  /// Gives free pages back to the file system; the file shrinks with the next checkpoint.
  ///
  /// - Parameters:
  ///   - limit: the most pages to give back.
  ///   - keepsSpare: whether to keep free pages for new messages.
  /// - Returns: how many pages it gave back.
  static func giveBack(
    upTo limit: Int, keepsSpare: Bool, _ db: Database
  ) throws -> (count: Int, left: Int) {
    func freePageCount() throws -> Int { try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0 }
    let before = try freePageCount()
    let filePageCount = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
    let spare = keepsSpare ? max(sparePageCount, filePageCount / 10) : 0
    let count = min(before - spare, limit)
    guard count > 0 else { return (0, 0) }
    // Each step of the statement frees one page, so it must run to its end.
    _ = try Row.fetchAll(db, sql: "PRAGMA incremental_vacuum(\(count))")
    let after = try freePageCount()
    return (before - after, max(after - spare, 0))
  }
}

extension EngineDatabase {
  /// Removes up to `count` of a channel's messages between two places, the oldest first, from the log
  /// and from every consumer, leased or not.
  ///
  /// - Parameters:
  ///   - start: the last message to keep before them; nil for none.
  ///   - end: the first message to keep after them; nil for none.
  /// - Returns: how many were removed; fewer than `count` at the end.
  package func purge(
    _ channel: Channel, after start: Timetoken? = nil, before end: Timetoken?, count: Int,
    in db: Database
  ) throws -> Int {
    guard let channelID = try Self.channelID(channel, db) else { return 0 }
    let timetokens = try Int64.fetchAll(
      db.cachedStatement(sql: Self.selectKeysForward),
      arguments: [channelID, start?.rawValue ?? 0, end?.rawValue ?? .max, count]
    ).map(Timetoken.init(unchecked:))
    var removal = MessageRemoval(db, channelID: channelID)
    for timetoken in timetokens { try removal.retireFromConsumers(timetoken) }
    try removal.finish()
    commitCounter?.note { $0.purged += timetokens.count }
    return timetokens.count
  }
}
