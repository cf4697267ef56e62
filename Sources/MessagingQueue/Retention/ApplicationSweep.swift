internal import GRDB

/// The retention of all channels of an application: small transactions, between which other callers write.
package struct ApplicationSweep: Sendable {
  private let application: String
  private let before: Timetoken
  /// The numbers of the channels whose old messages were not looked at yet.
  private var channels: ArraySlice<Int64> = []
  /// How far the first of them was looked at.
  private var last: Timetoken?
  /// Messages removed.
  private(set) var removedCount = 0

  /// - Parameter before: older messages are removed.
  init(_ application: String, before: Timetoken) {
    self.application = application
    self.before = before
  }

  var hasMessages: Bool { !channels.isEmpty }

  /// The names of the application's channels: after its own row, and before this.
  private var namesEnd: String { application + "0" }
  private var rowName: String { application + "/" }

  package static let selectOld = """
    SELECT id FROM channel WHERE name >= ? AND name < ?
      AND EXISTS (SELECT 1 FROM message WHERE channel_id = channel.id AND timetoken < ?)
    """

  /// Looks up the channels with messages to remove.
  mutating func findMessages(_ db: Database) throws {
    let ids = try Int64.fetchAll(
      db.cachedStatement(sql: Self.selectOld), arguments: [rowName, namesEnd, before.rawValue])
    channels = ids[...]
  }

  /// Looks at up to `count` messages, and removes those that no consumer needs.
  mutating func removeMessages(count: Int, _ db: Database) throws {
    var rest = count
    while rest > 0, let channel = channels.first {
      var sweep = try RetentionSweep(channel, Retention(), oldestKept: before.rawValue, db)
      let step = try sweep?.run(after: last, count: rest) ?? RetentionSweep.Step()
      removedCount += step.removedCount
      last = step.last
      if last == nil { channels.removeFirst() }
      rest -= max(step.passedCount, 1)
    }
  }

  /// Has channels of an older version keep acknowledged messages.
  func keepAcknowledged(_ db: Database) throws {
    try db.run(
      "UPDATE channel SET keeps_acknowledged = 1 WHERE name >= ? AND name < ? AND keeps_acknowledged = 0",
      rowName, namesEnd)
  }

  func hasForgetfulChannels(_ db: Database) throws -> Bool {
    try db.number(
      "SELECT 1 FROM channel WHERE name >= ? AND name < ? AND keeps_acknowledged = 0 LIMIT 1",
      rowName, namesEnd) != nil
  }
}

/// Channels that are empty are removed.
///
/// The row `application/` records how far the messages of the application's removed channels went. A channel that is
/// missing, or is added again, has this mark, so that a reader from an older place learns of the removal.
extension ApplicationSweep {
  private static let isRemovable = """
    message_count = 0 AND longest_age IS NULL AND most_messages IS NULL AND most_bytes IS NULL
    AND discards_unacknowledged = 0 AND removed_through < ?
    AND NOT EXISTS (SELECT 1 FROM message WHERE channel_id = channel.id)
    AND NOT EXISTS (SELECT 1 FROM consumer WHERE channel_id = channel.id)
    AND NOT EXISTS (SELECT 1 FROM deduplication WHERE channel_id = channel.id AND until > ?)
    """

  package static let selectEmpty =
    "SELECT id FROM channel WHERE name > ? AND name < ? AND \(isRemovable)"

  /// The channels that can be removed.
  func emptyChannels(now: Int64, _ db: Database) throws -> [Int64] {
    try Int64.fetchAll(
      db.cachedStatement(sql: Self.selectEmpty),
      arguments: [rowName, namesEnd, before.rawValue, now])
  }

  /// Removes channels that are still empty.
  func removeChannels(_ ids: some Sequence<Int64>, now: Int64, _ db: Database) throws {
    let row = try EngineDatabase.makeChannelID(Channel(rowName), db)
    // A removed number is never given out again, as the row has the greatest: readers know a channel by its number.
    try db.run(
      """
      UPDATE channel SET id = (SELECT max(id) FROM channel) + 1 WHERE id = ?
        AND id < (SELECT max(id) FROM channel) AND published_count = 0
        AND NOT EXISTS (SELECT 1 FROM consumer WHERE channel_id = channel.id)
        AND NOT EXISTS (SELECT 1 FROM deduplication WHERE channel_id = channel.id)
      """, row)
    for id in ids {
      let removedThrough = try db.number(
        """
        DELETE FROM channel WHERE id = ? AND id < (SELECT max(id) FROM channel) AND \(Self.isRemovable)
        RETURNING removed_through
        """, id, before.rawValue, now)
      guard let removedThrough else { continue }
      try db.run("DELETE FROM deduplication WHERE channel_id = ?", id)
      try db.run(
        "UPDATE channel SET removed_through = max(removed_through, ?) WHERE name = ?",
        removedThrough, rowName)
    }
  }
}

extension MessagingEngine {
  /// Removes the messages of an application that are older than a place, and its channels that are empty.
  ///
  /// Within a channel the oldest go first. A message that a consumer needs stays. A channel is removed if it also has
  /// no consumer, no limit of its own and no deduplication id that is remembered. The time follows the number of the
  /// application's channels and of the messages that it removes.
  ///
  /// It uses small transactions, between which other callers write. Channels of the application that an older version
  /// added keep acknowledged messages from here on.
  ///
  /// - Parameters:
  ///   - name: the part of the channels' names before the slash.
  ///   - before: messages from this place on stay. Let it be at least 10 minutes old: a live reader that waits looks
  ///     again after 5, and one that waits from before a removed message on is told that it possibly missed it.
  /// - Returns: how many messages were removed.
  /// - Throws: `busy`, `diskFull`, `stopped`, `vaultLocked`, `damaged`, `inputOutput`, `outcomeUnknown`, `cancelled`:
  ///   what was removed before the error stays removed.
  package func sweepApplication(
    named name: String, before: Timetoken
  ) async throws(EngineError) -> Int {
    let start = ApplicationSweep(name, before: before)
    var (sweep, hasForgetfulChannels) = try await access.read(during: "retention") { db in
      var sweep = start
      try sweep.findMessages(db)
      return (sweep, try sweep.hasForgetfulChannels(db))
    }
    if hasForgetfulChannels {
      try await commit(during: "retention") { _, db in try start.keepAcknowledged(db) }
    }
    while sweep.hasMessages {
      sweep = try await commit(during: "retention") { [sweep] tables, db in
        var next = sweep
        try next.removeMessages(count: Self.messagesAtOnce, db)
        let count = next.removedCount - sweep.removedCount
        tables.commitCounter?.note { $0.retired += count }
        return next
      }
    }
    let now = clockTicks
    var channels = try await access.read(during: "retention") { db in
      try start.emptyChannels(now: now, db)
    }[...]
    while !channels.isEmpty {
      let next = channels.prefix(Self.messagesAtOnce)
      channels.removeFirst(next.count)
      try await commit(during: "retention") { _, db in
        try start.removeChannels(next, now: now, db)
      }
    }
    return sweep.removedCount
  }
}

/// What an application has in the log.
package struct ApplicationSize: Sendable, Hashable {
  /// The bytes of its messages: payloads and headers.
  package var byteCount: Int
  /// Its channels.
  package var channelCount: Int
}

extension MessagingEngine {
  /// The size of each application that has channels, by the name before the slash.
  ///
  /// The time follows the number of channels, whatever the log holds.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  package func applicationSizes() async throws(EngineError) -> [String: ApplicationSize] {
    try await access.read(during: "reading sizes") { db in
      // Not sum(), which fails where damaged sums are too great.
      let rows = try Row.fetchAll(
        db,
        sql: """
          SELECT substr(name, 1, instr(name, '/') - 1) AS application,
            CAST(total(byte_count) AS INTEGER), count(nullif(instr(name, '/'), length(name)))
          FROM channel WHERE instr(name, '/') > 0 GROUP BY application
          """)
      return Dictionary(
        uniqueKeysWithValues: rows.map {
          ($0[0], ApplicationSize(byteCount: $0[1], channelCount: $0[2]))
        })
    }
  }
}
