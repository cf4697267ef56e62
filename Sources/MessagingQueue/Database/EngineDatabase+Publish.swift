internal import FileLayer
package import GRDB

extension EngineDatabase {
  /// Stores messages in the order given, all or none, and returns their timetokens; the messages have
  /// been checked.
  ///
  /// A message whose deduplication id is known stores nothing and gets the timetoken of the first.
  package func publish(_ messages: [Message], in db: Database) throws -> [Timetoken] {
    if messages.isEmpty { return [] }
    var publication = try Publication(db, now: time.now, window: configuration.deduplicationWindow)
    let timetokens = try messages.map { try publication.store($0) }
    try publication.finish(bell)
    tallies?.note { $0.published += publication.storedCount }
    return timetokens
  }

  /// Refuses messages that this engine does not take.
  func check(_ messages: [Message]) throws(EngineError) {
    for (index, message) in messages.enumerated() {
      let which = messages.count == 1 ? "the message" : "message \(index + 1) of \(messages.count)"
      try message.check(configuration, as: which)
    }
  }
}

/// What one transaction adds to the log: a row each, and the sums of each channel once.
private struct Publication {
  /// What a channel gains.
  private struct Gain {
    let channelID: Int64
    var messageCount = 0
    var byteCount = 0
  }

  private let db: Database
  private let now: Int64
  private let window: Duration
  private var clock: TimetokenClock
  private let insert: RowWriter
  private var gains: [Channel: Gain] = [:]
  private var timetokens: [Timetoken] = []

  var storedCount: Int { timetokens.count }

  init(_ db: Database, now: UnixTime, window: Duration) throws {
    self.db = db
    self.now = WallTime.ticks(of: now)
    self.window = window
    clock = try TimetokenClock(db, now: now)
    insert = try RowWriter(
      db,
      """
      INSERT INTO message (timetoken, channel_id, priority, due, expires, ordering_key, headers, payload)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """)
  }

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
  func finish(_ bell: ChangeBell) throws {
    if timetokens.isEmpty { return }
    bell.announce(timetokens, after: clock.start, in: Set(gains.keys))
    try clock.store(db)
    let update = try db.cachedStatement(
      sql: """
        UPDATE channel SET message_count = message_count + ?, byte_count = byte_count + ? WHERE id = ?
        """)
    for gain in gains.values where gain.messageCount > 0 {
      try update.execute(arguments: [gain.messageCount, gain.byteCount, gain.channelID])
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
