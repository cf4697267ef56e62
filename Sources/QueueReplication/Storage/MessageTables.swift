internal import Foundation
internal import GRDB
internal import MessagingQueue
internal import Replication

/// Applies records to the message database, in the caller's transaction.
///
/// Everything goes through the engine's own functions with the record's time, so that all nodes get the same rows.
struct MessageTables: ReplicatedTables {
  /// How long settlements that counted are known, in units of 100 ns of timetokens: an hour.
  private static let settlementWindow: Int64 = 36_000_000_000
  /// What undoing restores by changesets; published messages are undone by their places.
  private static let messageTables: Set = [
    "channel", "message", "consumer", "position", "delivery", "dead_letter", "deduplication",
    "replication_origin", "replication_lease",
  ]

  private let engine: MessagingEngine
  private let db: Database
  /// The tables of a server beside the engine's.
  private let serverTables: Set<String>
  /// Records what the present record changes; nil while it has changed nothing.
  private var recorder: RowRecorder?
  private(set) var results: [RecordNumber: RecordResult] = [:]

  init(_ engine: MessagingEngine, _ db: Database, serverTables: Set<String>) {
    self.engine = engine
    self.db = db
    self.serverTables = serverTables
  }

  // MARK: Applying

  mutating func apply(
    _ record: Record, _ name: RecordNumber, at position: UInt64, in shard: ShardState,
    _ clock: inout TimetokenRule
  ) throws {
    // Every record has a time of its own: no message's place comes before it.
    let tables = engine.tables.at(clock.next)
    switch record.body {
    case .commit(let published):
      try publish(published, name, tables, &clock)
    case .settlement(let settlement):
      try beginRecording(Self.messageTables)
      results[name] = .settled(try settle(settlement, shard.epoch?.epoch, tables, clock.next))
    case .operation(let bytes):
      try beginRecording(Self.messageTables)
      results[name] = try run(bytes, tables)
      clock.raise(to: try EngineDatabase.highWater(db))
    case .rows(let bytes):
      try beginRecording(serverTables)
      results[name] = try change(RowChanges(bytes))
    case .repair(let from, let to) where from < to:
      // The end of the log leaves the range, so that no reader continues within it.
      clock.raise(past: to)
      try db.run("UPDATE engine SET timetoken_high_water = ?", clock.highWater)
      try engine.noteChange(in: db)
    default: break
    }
  }

  private func change(_ rows: RowChanges) throws -> RecordResult {
    do {
      try rows.apply(to: db, in: serverTables)
      try engine.noteChange(in: db)
      return .places([])
    } catch is RowChanges.Conflict {
      return .conflict
    } catch let error as EngineError where error.code == .damaged {
      return .refused(error)
    }
  }

  private mutating func beginRecording(_ tables: Set<String>) throws {
    if recorder == nil { recorder = try RowRecorder(db, tables: tables) }
  }

  private mutating func publish(
    _ published: [PublishedMessage], _ name: RecordNumber, _ tables: EngineDatabase,
    _ clock: inout TimetokenRule
  ) throws {
    let messages: [Message]
    do {
      messages = try published.map {
        try Message(
          channel: $0.channel, deduplicationID: $0.deduplicationID, orderingKey: $0.orderingKey,
          content: $0.content)
      }
    } catch { throw Applier.Alarm.unreadable(name) }
    // Messages are undone by their places, without their bytes in a changeset.
    try beginRecording(["channel", "deduplication"])
    let before = clock.highWater
    let places = try tables.apply(messages, in: db)
    for (index, place) in places.enumerated() where place.rawValue > before {
      try db.run(
        "INSERT OR IGNORE INTO replication_origin VALUES (?, ?)", place.rawValue,
        MessageOrigin(name, UInt32(index)).bytes)
    }
    clock.raise(to: try EngineDatabase.highWater(db))
    results[name] = .places(places)
  }

  private func run(_ bytes: [UInt8], _ tables: EngineDatabase) throws -> RecordResult {
    let operation: QueueOperation
    do {
      operation = try QueueOperation(decoding: bytes, timetoken(of:))
    } catch  where error is RecordError || error is EngineError {
      return .refused(EngineError(.invalidArgument, "an operation of the log cannot be read"))
    }
    do {
      return .operation(try operation.run(tables, db))
    } catch let error as EngineError where error.code == .invalidArgument {
      return .refused(error)
    }
  }

  private func timetoken(of origin: MessageOrigin) throws -> Timetoken? {
    try db.number("SELECT timetoken FROM replication_origin WHERE origin = ?", origin.bytes)
      .map(Timetoken.init(unchecked:))
  }

  // MARK: Settling

  private func settle(
    _ settlement: Settlement, _ epoch: EpochID?, _ tables: EngineDatabase, _ now: Int64
  ) throws -> SettlementRule.Decision {
    let delivery = try timetoken(of: settlement.message).flatMap {
      try tables.delivery(of: $0, for: settlement.consumer, in: db)
    }
    let earlier = try db.number(
      "SELECT kind FROM replication_lease WHERE lease = ?", settlement.lease.bytes
    ).flatMap { Settlement.Kind(rawValue: UInt8(truncatingIfNeeded: $0)) }
    let state = delivery.map { delivery in
      DeliveryState(
        attemptCount: UInt32(clamping: delivery.attemptCount),
        end: delivery.end.map { $0 == .dead ? .dead : .acknowledged })
    }
    let decision = SettlementRule.decide(
      settlement, state, earlier: earlier, epoch: epoch,
      mostAttempts: delivery?.maximumAttempts.map { UInt32(clamping: $0) })
    guard case .counts(let next) = decision, let delivery else { return decision }
    try tables.settle(
      delivery, Self.change(settlement, isDead: next.end == .dead), in: db)
    try db.run(
      "DELETE FROM replication_lease WHERE timetoken < ?", now - Self.settlementWindow)
    try db.run(
      "INSERT INTO replication_lease VALUES (?, ?, ?)", settlement.lease.bytes,
      Int64(settlement.outcome.kind.rawValue), now)
    return decision
  }

  private static func change(
    _ settlement: Settlement, isDead: Bool
  ) -> EngineDatabase.AppliedSettlement {
    switch settlement.outcome {
    case .acknowledged: .acknowledgement
    case .released(let countsAttempt, let reason):
      .release(
        reason: reason.isEmpty ? nil : reason, countsAttempt: countsAttempt, isDead: isDead,
        due: settlement.due)
    case .rejected(let reason): .rejection(reason: reason)
    case .leaseEnded: .leaseEnd(isDead: isDead)
    }
  }

  // MARK: Parts

  func keepShare(_ share: [UInt8], _ name: RecordNumber, at position: UInt64) throws {
    try db.run(
      "INSERT INTO replication_share VALUES (?, ?, ?, ?, NULL)", name.author.bytes,
      Int64(name.number), share, Int64(position))
  }

  func shares(of author: AuthorID) throws -> [[UInt8]] {
    let select = try db.cachedStatement(
      sql: """
        SELECT share FROM replication_share WHERE author = ? AND used IS NULL ORDER BY number
        """)
    return try Data.fetchAll(select, arguments: [Data(author.bytes)]).map { [UInt8]($0) }
  }

  func dropShares(of author: AuthorID, at position: UInt64) throws {
    try db.run(
      "UPDATE replication_share SET used = ? WHERE author = ? AND used IS NULL", Int64(position),
      author.bytes)
  }

  // MARK: Undoing

  mutating func keep(_ record: SealedRecord, _ element: Tail.Element) throws {
    let changes = try recorder.take()?.finish()
    try db.run(
      "INSERT INTO replication_tail VALUES (?, ?, ?, ?, ?, ?)", Int64(element.place.sequence),
      element.place.storedAt, record.bytes, element.isApplied ? 1 : 0, element.before.bytes,
      changes?.bytes ?? [])
  }

  mutating func undo(after position: UInt64) throws -> [SealedRecord] {
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT record, is_applied, before, changes FROM replication_tail WHERE position > ?
        ORDER BY position DESC
        """, arguments: [Int64(position)])
    var undone: [SealedRecord] = []
    var highWater: Int64?
    while let row = try rows.next() {
      let changes = RowChanges([UInt8](row[3] as Data))
      if !changes.bytes.isEmpty {
        try changes.inverted().apply(to: db, in: Self.messageTables.union(serverTables))
      }
      if row[1] as Bool { undone.append(try SealedRecord(parsing: [UInt8](row[0] as Data))) }
      highWater = try ShardState.Change(decoding: [UInt8](row[2] as Data)).values.highWater
    }
    guard let highWater else { return [] }
    try db.run("DELETE FROM replication_origin WHERE timetoken > ?", highWater)
    try db.run("DELETE FROM message WHERE timetoken > ?", highWater)
    try db.run("UPDATE engine SET timetoken_high_water = ?", highWater)
    try db.run("DELETE FROM replication_share WHERE position > ?", Int64(position))
    try db.run("UPDATE replication_share SET used = NULL WHERE used > ?", Int64(position))
    try db.run("DELETE FROM replication_tail WHERE position > ?", Int64(position))
    return undone.reversed()
  }

  mutating func note(_ place: RecordPlace) throws {
    try db.run(
      "UPDATE replication_tail SET stored_at = ? WHERE position = ?", place.storedAt,
      Int64(place.sequence))
  }

  mutating func release(through place: RecordPlace) throws {
    try db.run("DELETE FROM replication_share WHERE used <= ?", Int64(place.sequence))
    try db.run("DELETE FROM replication_tail WHERE position <= ?", Int64(place.sequence))
  }
}
