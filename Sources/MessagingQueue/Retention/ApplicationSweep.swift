internal import GRDB

/// The retention of all channels of an application: small transactions, between which other callers write.
package struct ApplicationSweep: Sendable {
  private let application: String
  /// Older messages are removed.
  let before: Timetoken

  init(_ application: String, before: Timetoken) {
    self.application = application
    self.before = before
  }

  /// The names of the application's channels: after its own row, and before this.
  private var namesEnd: String { application + "0" }
  private var rowName: String { application + "/" }

  package static let selectOld = """
    SELECT id FROM channel WHERE name >= ? AND name < ?
      AND EXISTS (SELECT 1 FROM message WHERE channel_id = channel.id AND timetoken < ?)
    """

  /// The channels with messages to remove, by their numbers.
  func channelsWithOldMessages(_ db: Database) throws -> [Int64] {
    try Int64.fetchAll(
      db.cachedStatement(sql: Self.selectOld), arguments: [rowName, namesEnd, before.rawValue])
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
    if let replica = try replica(), !replica.sweeps { return 0 }
    let sweep = ApplicationSweep(name, before: before)
    var (channels, hasForgetfulChannels) = try await access.read(during: "retention") { db in
      (try sweep.channelsWithOldMessages(db)[...], try sweep.hasForgetfulChannels(db))
    }
    if hasForgetfulChannels { _ = try await perform(.keepAcknowledged(application: name)) }
    var removedCount = 0
    var last: Timetoken?
    while !channels.isEmpty {
      let step = try await perform(
        .sweepApplication(
          name, before: before, channels: Array(channels.prefix(Self.messagesAtOnce)), after: last,
          count: Self.messagesAtOnce))
      removedCount += Int(step.count)
      last = step.last
      channels.removeFirst(step.passed.count)
    }
    let now = clockTicks
    var empty = try await access.read(during: "retention") { db in
      try sweep.emptyChannels(now: now, db)
    }[...]
    while !empty.isEmpty {
      let next = Array(empty.prefix(Self.messagesAtOnce))
      empty.removeFirst(next.count)
      _ = try await perform(.removeChannels(application: name, before: before, next))
    }
    return removedCount
  }
}

extension EngineDatabase {
  /// Looks at up to `count` messages of channels, and removes those that no consumer needs.
  ///
  /// - Parameters:
  ///   - channels: at least one for each message that is looked at.
  ///   - start: how far the first of them was looked at.
  func sweepApplication(
    _ sweep: ApplicationSweep, _ channels: [Int64], after start: Timetoken?, count: Int,
    _ db: Database
  ) throws -> QueueOperation.Result {
    var result = QueueOperation.Result(last: start)
    var rest = count
    for channel in channels where rest > 0 {
      var channelSweep = try RetentionSweep(
        channel, Retention(), oldestKept: sweep.before.rawValue, db)
      let step = try channelSweep?.run(after: result.last, count: rest) ?? RetentionSweep.Step()
      result.count += Int64(step.removedCount)
      result.last = step.last
      if step.last != nil { break }
      result.passed.append(channel)
      rest -= max(step.passedCount, 1)
    }
    commitCounter?.note { $0.retired += Int(result.count) }
    return result
  }
}

/// What an application has in the log.
package struct ApplicationSize: Sendable, Hashable {
  /// The bytes of its messages: payloads and headers.
  package var byteCount: Int
  /// Its messages.
  package var messageCount: Int
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
            CAST(total(byte_count) AS INTEGER), CAST(total(message_count) AS INTEGER),
            count(nullif(instr(name, '/'), length(name)))
          FROM channel WHERE instr(name, '/') > 0 GROUP BY application
          """)
      return Dictionary(
        uniqueKeysWithValues: rows.map {
          ($0[0], ApplicationSize(byteCount: $0[1], messageCount: $0[2], channelCount: $0[3]))
        })
    }
  }

  /// Whether the log has a channel: one that something was published to or consumes.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  package func hasChannel(_ channel: Channel) async throws(EngineError) -> Bool {
    try await access.read(during: "looking for a channel") { db in
      try EngineDatabase.channelID(channel, db) != nil
    }
  }
}
