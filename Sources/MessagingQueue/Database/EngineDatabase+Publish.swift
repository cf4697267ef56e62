internal import FileLayer
internal import GRDB

extension EngineDatabase {
  /// Publishes in the caller's transaction, all or none.
  ///
  /// - Throws: `invalidArgument` outside a transaction, `payloadTooLarge`, `diskFull`, `damaged`,
  ///   `inputOutput`: after an error no message is published.
  func publish(
    _ messages: [Message], in db: Database
  ) throws(EngineError) -> [Timetoken] {
    try check(messages)
    guard db.isInsideTransaction else {
      throw EngineError(
        .invalidArgument, "publishing: the connection has no open transaction",
        hint: "call it inside database.write, or inTransaction")
    }
    if messages.isEmpty { return [] }
    return try translatingErrors(during: "publishing in the caller's transaction") {
      var timetokens: [Timetoken] = []
      try db.inSavepoint {
        var publication: Publication?
        timetokens = try publish(messages, in: &publication, db)
        try Self.finish(&publication, db)
        return .commit
      }
      return timetokens
    }
  }

  /// Stores messages in the order given, as a part of what a transaction publishes.
  ///
  /// The caller has checked them; ``Publication/finish()`` writes the sums. A message with a known
  /// deduplication id stores nothing and gets the timetoken of the first. After an error the caller
  /// must restore `publication`, except after a single message, which leaves it unchanged.
  func publish(
    _ messages: [Message], in publication: inout Publication?, _ db: Database
  ) throws -> [Timetoken] {
    var open = try publication.take() ?? Publication(self, db)
    defer { publication = open }
    let storedBefore = open.storedCount
    let timetokens = try messages.map { try open.store($0) }
    commitCounter?.note { $0.published += open.storedCount - storedBefore }
    return timetokens
  }

  /// Throws for messages that this engine does not accept.
  func check(_ messages: [Message]) throws(EngineError) {
    for (index, message) in messages.enumerated() {
      let which = messages.count == 1 ? "the message" : "message \(index + 1) of \(messages.count)"
      try message.check(configuration, as: which)
    }
  }
}

/// The additions of one transaction to the log: a row for each message, and each channel's sums once.
///
/// The operations of a transaction share one publication, as they share its commit.
struct Publication {
  /// The messages and bytes that a channel gains.
  private struct Gain {
    let channelID: Int64
    var messageCount = 0
    var byteCount = 0
  }

  private let db: Database
  private let notifier: ChangeNotifier
  private let now: Int64
  private let window: Duration
  private var clock: TimetokenClock
  private let insert: EngineStatement
  private var gains: [Channel: Gain] = [:]
  private var timetokens: [Timetoken] = []

  var storedCount: Int { timetokens.count }

  init(_ tables: EngineDatabase, _ db: Database) throws {
    self.db = db
    notifier = tables.notifier
    let time = tables.time.now
    now = WallTime.ticks(of: time)
    window = tables.configuration.deduplicationWindow
    clock = try TimetokenClock(db, now: time)
    insert = try EngineStatement.messages(db)
  }

  /// Whether storing a message takes one statement, which SQLite undoes by itself if it fails.
  func takesOneStatement(_ message: Message) -> Bool {
    message.deduplicationID == nil && gains[message.channel] != nil
  }

  /// Stores a message; counts nothing if it throws.
  mutating func store(_ message: Message) throws -> Timetoken {
    var gain = try gains[message.channel] ?? newGain(of: message.channel)
    let deduplication = Deduplication(db, channelID: gain.channelID, now: now)
    if let id = message.deduplicationID, let first = try deduplication.timetoken(of: id) {
      return first
    }
    let timetoken = try clock.next()
    try insert.execute(
      timetoken.rawValue, gain.channelID, message.priority.rawValue, due(message),
      message.expirationTicks ?? message.timeToLive.map { now + WallTime.ticks(of: $0) },
      message.orderingKey, HeaderCoding.encode(message.headers), message.payload)
    if let id = message.deduplicationID {
      try deduplication.remember(id, of: timetoken, until: now + WallTime.ticks(of: window))
    }
    gain.messageCount += 1
    gain.byteCount += message.byteCount
    gains[message.channel] = gain
    timetokens.append(timetoken)
    return timetoken
  }

  /// Writes the sums and has the notifier wake receivers after the commit; call it in the same
  /// transaction.
  func finish() throws {
    if timetokens.isEmpty { return }
    notifier.announce(timetokens, after: clock.start, in: Set(gains.keys))
    try clock.store(db)
    let update = try EngineStatement(
      db,
      """
      UPDATE channel SET message_count = message_count + ?1,
        published_count = published_count + ?1, byte_count = byte_count + ?2
      WHERE id = ?3
      """)
    for gain in gains.values where gain.messageCount > 0 {
      try update.execute(gain.messageCount, gain.byteCount, gain.channelID)
    }
  }

  private func newGain(of channel: Channel) throws -> Gain {
    Gain(channelID: try EngineDatabase.makeChannelID(channel, db))
  }

  /// When the message is due; nil for now or the past.
  private func due(_ message: Message) -> Int64? {
    let due =
      switch message.availability.moment {
      case .after(let delay): now + WallTime.ticks(of: delay)
      case .at, .atTicks: message.availability.ticks ?? now
      }
    return due > now ? due : nil
  }
}

/// The deduplication ids of one channel, for as long as the engine remembers them.
struct Deduplication {
  /// Each new id removes a few expired ones, so that no publish waits for many.
  private static let forgottenAtOnce = 16

  private let db: Database
  private let channelID: Int64
  private let now: Int64

  init(_ db: Database, channelID: Int64, now: Int64) {
    self.db = db
    self.channelID = channelID
    self.now = now
  }

  /// The message that was published with this id, if the engine remembers the id.
  func timetoken(of id: String) throws -> Timetoken? {
    let select = try db.cachedStatement(
      sql: "SELECT timetoken FROM deduplication WHERE channel_id = ? AND id = ? AND until > ?")
    return try Int64.fetchOne(select, arguments: [channelID, id, now])
      .map(Timetoken.init(unchecked:))
  }

  func remember(_ id: String, of timetoken: Timetoken, until: Int64) throws {
    try db.cachedStatement(
      sql: """
        DELETE FROM deduplication WHERE (channel_id, id) IN
          (SELECT channel_id, id FROM deduplication WHERE until <= ? ORDER BY until LIMIT ?)
        """
    ).execute(arguments: [now, Self.forgottenAtOnce])
    try db.cachedStatement(sql: "INSERT OR REPLACE INTO deduplication VALUES (?, ?, ?, ?)")
      .execute(arguments: [channelID, id, timetoken.rawValue, until])
  }
}
