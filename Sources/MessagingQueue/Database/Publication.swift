internal import FileLayer
internal import GRDB

/// The additions of one transaction to the log: a row for each message, and each channel's sums once.
///
/// The operations of a transaction share one publication, as they share its commit.
struct Publication {
  /// Each new deduplication id removes a few expired ones, so that no publish waits for many.
  private static let forgottenAtOnce = 16

  /// The messages and bytes that a channel gains.
  private struct Gain {
    let channelID: Int64
    var messageCount = 0
    var byteCount = 0
  }

  private let tables: EngineDatabase
  private let db: Database
  private let now: Int64
  private var clock: TimetokenClock
  private let insert: EngineStatement
  private var gains: [Channel: Gain] = [:]
  private var timetokens: [Timetoken] = []

  var storedCount: Int { timetokens.count }

  init(_ tables: EngineDatabase, _ db: Database) throws {
    // What is in the log is applied on every node, whatever its limit: posting has checked it.
    if !tables.isReplicated { try DatabaseSize.requireSpace(db) }
    self.tables = tables
    self.db = db
    let time = tables.time.now
    now = WallTime.ticks(of: time)
    clock = try TimetokenClock(db, now: time)
    insert = try EngineStatement.messages(db)
  }

  /// Whether storing a message takes one statement, which SQLite undoes by itself if it fails.
  func takesOneStatement(_ message: Message) -> Bool {
    message.deduplicationID == nil && gains[message.channel] != nil
  }

  /// Stores a message; counts nothing if it throws.
  mutating func store(_ message: Message) throws -> Timetoken {
    var gain =
      try gains[message.channel]
      ?? Gain(channelID: EngineDatabase.makeChannelID(message.channel, db))
    let step = tables.isReplicated ? Channel.applicationStep : message.channel.timetokenStep
    // Nodes compare timetokens, with the end of the window included: no clock of theirs decides.
    let moment = tables.isReplicated ? try clock.upcoming(multipleOf: step) - 1 : now
    if let id = message.deduplicationID,
      let first = try db.number(
        "SELECT timetoken FROM deduplication WHERE channel_id = ? AND id = ? AND until > ?",
        gain.channelID, id, moment)
    {
      return Timetoken(unchecked: first)
    }
    let timetoken = try clock.next(multipleOf: step)
    try insert.execute(
      timetoken.rawValue, gain.channelID, message.priority.rawValue, due(message),
      message.expirationTicks ?? message.timeToLive.map { now + WallTime.ticks(of: $0) },
      message.orderingKey, HeaderCoding.encode(message.headers), message.payload)
    if let id = message.deduplicationID {
      try remember(id, of: timetoken, channelID: gain.channelID, at: moment)
    }
    gain.messageCount += 1
    gain.byteCount += message.byteCount
    gains[message.channel] = gain
    timetokens.append(timetoken)
    return timetoken
  }

  /// Writes the sums and has the notifier wake receivers after the commit; call it in the same
  /// transaction.
  ///
  /// - Parameters:
  ///   - countsCommit: whether it counts the commit too, in the same row.
  ///   - isLast: whether nothing else of the transaction counts it or can be undone alone.
  /// - Returns: false if there was nothing to write.
  @discardableResult
  func finish(countsCommit: Bool = false, isLast: Bool = false) throws -> Bool {
    if timetokens.isEmpty { return false }
    tables.notifier.announce(timetokens, after: clock.start, in: Set(gains.keys))
    let commitNumber = try clock.store(db, countsCommit: countsCommit)
    if isLast, let commitNumber { tables.notifier.announce(commit: commitNumber) }
    for gain in gains.values where gain.messageCount > 0 {
      try db.run(
        """
        UPDATE channel SET message_count = message_count + ?1,
          published_count = published_count + ?1, byte_count = byte_count + ?2
        WHERE id = ?3
        """, gain.messageCount, gain.byteCount, gain.channelID)
    }
    return true
  }

  /// Has later publications with this id find the message, as long as the window lasts.
  private func remember(
    _ id: String, of timetoken: Timetoken, channelID: Int64, at moment: Int64
  ) throws {
    try db.run(
      """
      DELETE FROM deduplication WHERE (channel_id, id) IN
        (SELECT channel_id, id FROM deduplication WHERE until <= ? ORDER BY until LIMIT ?)
      """, moment, Self.forgottenAtOnce)
    try db.run(
      "INSERT OR REPLACE INTO deduplication VALUES (?, ?, ?, ?)", channelID, id, timetoken.rawValue,
      (tables.isReplicated ? timetoken.rawValue : now)
        + WallTime.ticks(of: tables.deduplicationWindow))
  }

  /// When the message is due; nil for now or the past.
  private func due(_ message: Message) -> Int64? {
    let due =
      switch message.availability.moment {
      case .after(let delay): now + WallTime.ticks(of: delay)
      case .at(let ticks): ticks
      }
    return due > now ? due : nil
  }
}
