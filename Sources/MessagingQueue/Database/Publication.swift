internal import FileLayer
internal import GRDB

/// What one transaction adds to the log: a row each, and the sums of each channel once.
///
/// The verbs of a transaction share one, as they share its commit.
struct Publication {
  /// What a channel gains.
  private struct Gain {
    let channelID: Int64
    var messageCount = 0
    var byteCount = 0
  }

  private let db: Database
  private let bell: ChangeBell
  private let now: Int64
  private let window: Duration
  private var clock: TimetokenClock
  private let insert: EngineStatement
  private var gains: [Channel: Gain] = [:]
  private var timetokens: [Timetoken] = []

  var storedCount: Int { timetokens.count }

  init(_ tables: EngineDatabase, _ db: Database) throws {
    self.db = db
    bell = tables.bell
    let time = tables.time.now
    now = WallTime.ticks(of: time)
    window = tables.configuration.deduplicationWindow
    clock = try TimetokenClock(db, now: time)
    insert = try EngineStatement.messages(db)
  }

  /// Whether a message takes one statement, which SQLite undoes by itself when it fails.
  func takesOneStatement(_ message: Message) -> Bool {
    message.deduplicationID == nil && gains[message.channel] != nil
  }

  /// Stores a message; when it throws, nothing is counted.
  mutating func store(_ message: Message) throws -> Timetoken {
    var gain = try gains[message.channel] ?? newGain(of: message.channel)
    let deduplication = Deduplication(db, channelID: gain.channelID, now: now)
    if let id = message.deduplicationID, let first = try deduplication.timetoken(of: id) {
      return first
    }
    let timetoken = clock.next()
    try insert.execute(
      timetoken.rawValue, gain.channelID, message.priority.rawValue, due(message),
      message.expires ?? message.timeToLive.map { now + WallTime.ticks(of: $0) },
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

  /// Writes the sums, which belong into the same transaction, and has the bell ring after it.
  func finish() throws {
    if timetokens.isEmpty { return }
    bell.announce(timetokens, after: clock.start, in: Set(gains.keys))
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

  /// Nil for now, or the past.
  private func due(_ message: Message) -> Int64? {
    let due =
      switch message.availability.moment {
      case .after(let delay): now + WallTime.ticks(of: delay)
      case .at(let date): WallTime.ticks(of: date)
      case .atTicks(let ticks): ticks
      }
    return due > now ? due : nil
  }
}
