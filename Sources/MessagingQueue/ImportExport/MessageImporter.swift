internal import FileLayer
internal import Foundation
internal import GRDB
internal import VaultCrypto

/// Stores lines of an export in one transaction: `docs/reference/message-export.md`, "Import".
struct MessageImporter {
  private struct ChannelState {
    let id: Int64
    let keepsAcknowledged: Bool
    var messageCount = 0
    var byteCount = 0
    var consumers: [Consumer: Int64] = [:]
    var removal: MessageRemoval
  }

  private let db: Database
  private let random: RandomSource
  private let now: Int64
  private let highWater: Int64
  private let insert: EngineStatement
  private var clock: TimetokenClock
  private var channels: [Channel: ChannelState] = [:]
  private var positions: PositionTable
  private var timetokens: [Timetoken] = []
  private var importProgress: ImportProgress

  /// - Parameter highWater: after the last line, new timetokens are greater than this one.
  /// - Throws: `queueFull`.
  init(
    _ tables: EngineDatabase, _ importProgress: ImportProgress, highWater: Int64, _ db: Database
  ) throws {
    try DatabaseSize.requireSpace(db)
    self.highWater = highWater
    self.db = db
    self.importProgress = importProgress
    random = tables.random
    now = WallTime.ticks(of: tables.time.now)
    insert = try EngineStatement.messages(db)
    clock = try TimetokenClock(db, now: tables.time.now)
    positions = PositionTable(db, now: now)
  }

  mutating func store(_ record: ExchangeRecord) throws {
    switch record {
    case .export, .resumed: break
    case .channel(let channel): try store(channel)
    case .consumer(let consumer):
      _ = try consumerID(
        consumer.consumer, consumer.channel, maximumAttempts: consumer.maximumAttempts)
    case .message(let message): try store(message)
    case .deduplication(let deduplication): try store(deduplication)
    case .end:
      clock.raise(to: highWater)
      importProgress.isComplete = true
    }
  }

  /// Writes the positions and the counts of the channels, and returns the import's progress.
  ///
  /// Call it once, at the end of the transaction.
  mutating func finish(_ notifier: ChangeNotifier) throws -> ImportProgress {
    try clock.store(db)
    try positions.store()
    let update = try db.cachedStatement(
      sql: """
        UPDATE channel SET message_count = message_count + ?, byte_count = byte_count + ?,
          published_count = published_count + ? WHERE id = ?
        """)
    for var channel in channels.values {
      // No reader ever sees a message that one transaction both adds and removes.
      let visibleCount = channel.messageCount - channel.removal.messageCount
      try update.execute(arguments: [
        channel.messageCount, channel.byteCount, visibleCount, channel.id,
      ])
      try channel.removal.finish()
    }
    notifier.announce(timetokens, after: clock.start, in: Set(channels.keys))
    return importProgress
  }

  /// Adds a channel with its settings; a channel that exists keeps its own.
  ///
  /// A channel to which nothing was ever published gets the mark of the messages that were removed.
  private mutating func store(_ channel: ExportedChannel) throws {
    if try EngineDatabase.channelID(channel.channel, db) == nil {
      try EngineDatabase.setRetention(channel.retention, of: channel.channel, db)
    }
    try db.execute(
      sql: """
        UPDATE channel SET removed_through = max(removed_through, ?)
        WHERE name = ? AND published_count = 0
        """,
      arguments: [channel.removedThrough, channel.channel.name])
  }

  private mutating func store(_ message: ExportedMessage) throws {
    var channel = try load(message.channel)
    let timetoken: Timetoken
    if let kept = clock.keep(message.timetoken) {
      timetoken = kept
      importProgress.keptCount &+= 1
    } else {
      timetoken = try clock.next(multipleOf: message.channel.timetokenStep)
      importProgress.renumberedCount &+= 1
    }
    try insert.execute(
      timetoken.rawValue, channel.id, message.priority.rawValue, message.due, message.expires,
      message.orderingKey, HeaderCoding.encode(message.headers), message.payload)
    channel.messageCount += 1
    channel.byteCount += message.payload.count + HeaderCoding.byteCount(of: message.headers)
    channels[message.channel] = channel
    timetokens.append(timetoken)
    try storeStates(of: message, as: timetoken)
  }

  private mutating func storeStates(of message: ExportedMessage, as timetoken: Timetoken) throws {
    /// Advances the consumer's position past the message, and returns the consumer's id.
    func advance(_ consumer: Consumer, _ importer: inout MessageImporter) throws -> Int64 {
      let channelID = try importer.load(message.channel).id
      let id = try importer.consumerID(consumer, message.channel, maximumAttempts: nil)
      try importer.positions.advance(
        id, channelID: channelID, message.priority, to: timetoken)
      return id
    }
    for consumer in message.settledBy { _ = try advance(consumer, &self) }
    for delivery in message.deliveries {
      // An imported lease has ended, as after a restart of the machine.
      let lease = delivery.isLeased ? Data(random.bytes(count: LeaseToken.secretByteCount)) : nil
      let endedHold: Int64? = delivery.isLeased ? 0 : nil
      try db.cachedStatement(
        sql: """
          INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count, lease,
            held_boot, held_until, due, is_blocked, failures)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)
          """
      ).execute(arguments: [
        try advance(delivery.consumer, &self), timetoken.rawValue, message.priority.rawValue,
        message.orderingKey, delivery.attemptCount, lease, endedHold, endedHold,
        delivery.due.flatMap { $0 > now ? $0 : nil }, DeliveryFailure.text(of: delivery.failures),
      ])
    }
    for dead in message.deadLetters {
      try db.cachedStatement(sql: "INSERT INTO dead_letter VALUES (?, ?, ?, ?, ?, ?)")
        .execute(arguments: [
          try advance(dead.consumer, &self), timetoken.rawValue, dead.attemptCount, dead.reason,
          dead.died, DeliveryFailure.text(of: dead.failures),
        ])
    }
    if !message.settledBy.isEmpty, channels[message.channel]?.keepsAcknowledged == false {
      try positions.store()
      try channels[message.channel]?.removal.removeUnlessNeeded(timetoken)
    }
  }

  /// A deduplication id that is still in its window here keeps its own message.
  private mutating func store(_ deduplication: ExportedDeduplication) throws {
    let channelID = try load(deduplication.channel).id
    // All messages are stored by now. The message of this id can be newer than they, and removed.
    clock.raise(to: highWater)
    try db.cachedStatement(
      sql: """
        INSERT INTO deduplication (channel_id, id, timetoken, until) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET timetoken = excluded.timetoken, until = excluded.until
        WHERE until <= ?5
        """
    ).execute(arguments: [
      channelID, deduplication.id, deduplication.timetoken, deduplication.until, now,
    ])
  }

  /// Reads the channel's state into ``channels``; creates a channel that does not exist.
  private mutating func load(_ channel: Channel) throws -> ChannelState {
    if let state = channels[channel] { return state }
    let id = try EngineDatabase.makeChannelID(channel, db)
    let keeps = try Bool.fetchOne(
      db.cachedStatement(sql: "SELECT keeps_acknowledged FROM channel WHERE id = ?"),
      arguments: [id])
    let state = ChannelState(
      id: id, keepsAcknowledged: keeps ?? false, removal: MessageRemoval(db, channelID: id))
    channels[channel] = state
    return state
  }

  private mutating func consumerID(
    _ consumer: Consumer, _ channel: Channel, maximumAttempts: Int?
  ) throws -> Int64 {
    let state = try load(channel)
    if let id = state.consumers[consumer] { return id }
    try db.cachedStatement(
      sql: """
        INSERT INTO consumer (channel_id, name, most_attempts) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
        """
    ).execute(arguments: [state.id, consumer.name, maximumAttempts])
    let select = try db.cachedStatement(
      sql: "SELECT id FROM consumer WHERE channel_id = ? AND name = ?")
    guard let id = try Int64.fetchOne(select, arguments: [state.id, consumer.name]) else {
      throw EngineError.engineRowMissing
    }
    channels[channel]?.consumers[consumer] = id
    return id
  }
}
