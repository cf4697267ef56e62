internal import FileLayer
internal import GRDB
internal import MessagingQueue
internal import Replication
internal import Synchronization
internal import VaultCrypto

/// A member's database: applies the log, and takes what goes into it.
///
/// Everything is a transaction of the engine.
final class ShardDatabase: Sendable {
  /// What a batch of the log has changed.
  struct Taken: Sendable {
    let outcomes: [Applier.Outcome]
    let results: [RecordNumber: RecordResult]
    /// New names of records of this process.
    let renamed: [RecordNumber: RecordNumber]
    let view: View
    /// Why the node must stop; what came before it is applied.
    let alarm: Applier.Alarm?
  }

  /// What is known of the log after a batch.
  struct View: Sendable {
    let values: ShardState.Values
    let members: [MemberID: ShardState.Member]
    /// The place with which the next read begins.
    let readPlace: UInt64
    /// Records up to here are never undone, with the values there.
    let safe: UInt64
    let safeValues: ShardState.Values

    init(_ applier: Applier) {
      values = applier.state.values
      members = applier.state.members
      readPlace = applier.readPlace
      safe = applier.safe
      safeValues = applier.safeValues
    }
  }

  let engine: MessagingEngine
  let member: MemberID
  /// Whether this member leaves, and so does not join again when its leave is applied.
  let leaves = Atomic(false)
  /// The newest key of this node's ring.
  let newestKey: UInt32
  private let ring: SharedRing
  private let syncInterval: Duration
  private let serverTables: Set<String>
  private let now: @Sendable () -> Duration
  /// Nil while a transaction has it, and after one that failed: then it is loaded again.
  private let applier = Mutex<Applier?>(nil)

  /// - Parameters:
  ///   - syncInterval: the longest that a broker of the cluster can keep a record without a sync.
  ///   - serverTables: those of a server beside the engine's.
  ///   - now: the boot clock.
  init(
    _ engine: MessagingEngine, member: MemberID, ring: sending RingSeal, newestKey: UInt32,
    syncInterval: Duration, serverTables: Set<String>, now: @escaping @Sendable () -> Duration
  ) {
    self.engine = engine
    self.member = member
    self.newestKey = newestKey
    self.ring = SharedRing(ring)
    self.syncInterval = syncInterval
    self.serverTables = serverTables
    self.now = now
  }

  /// Begins a process: draws its author ids, and writes its join.
  func start() async throws -> View {
    try await engine.commits.run(during: "starting replication") { [self] db in
      let applier = try StoredState.load(db, now: now())
      var random = SystemRandomNumberGenerator()
      var outbox = try Outbox(db)
      try outbox.start(using: &random)
      try db.run("DELETE FROM replication_awaited")
      try add(.join(member, safe: applier.safe), to: .control, &outbox, applier.state.values.key)
      try outbox.store()
      self.applier.withLock { $0 = applier }
      return View(applier)
    }
  }

  // MARK: The outbox

  /// Writes what a transaction has published.
  func post(_ messages: [Message], in db: Database) throws -> RecordNumber {
    guard messages.count <= Replication.Record.mostMessages else {
      throw EngineError(
        .invalidArgument,
        "\(messages.count) messages at a time, the most of a home that is one of several are "
          + "\(Replication.Record.mostMessages)", hint: "publish fewer at a time")
    }
    let now = engine.clockTicks
    let published = messages.map { message in
      PublishedMessage(
        channel: message.channel.name, deduplicationID: message.deduplicationID,
        orderingKey: message.orderingKey, content: message.content(at: now))
    }
    return try write([.commit(published)], to: .publications, in: db)[0]
  }

  /// Writes records in a transaction of their own.
  ///
  /// - Parameters:
  ///   - isDurable: whether a power cut leaves them. Default: true.
  ///   - isAwaited: whether this process reads their results from ``AwaitedRecords``. Default: false.
  ///   - noting: called with the records' names after the commit, before any of them can be applied.
  func write(
    _ bodies: [Record.Body], isDurable: Bool = true, isAwaited: Bool = false,
    noting: @escaping @Sendable ([RecordNumber]) -> Void = { _ in }
  ) async throws(EngineError) -> [RecordNumber] {
    if bodies.isEmpty { return [] }
    return try await engine.commits.run(
      during: "writing to the outbox", isDurable: isDurable
    ) { [self] db in
      let names = try write(bodies, to: .control, in: db)
      if isAwaited { for name in names { try AwaitedRecords.expect(name, db) } }
      db.afterNextTransaction { _ in noting(names) }
      return names
    }
  }

  /// The record of a change of the queue.
  func body(of operation: QueueOperation) async throws(EngineError) -> Record.Body {
    try await engine.access.read(during: "naming messages") { db in
      .operation(
        try operation.encoded { timetoken in
          let select = try EngineStatement(
            db, "SELECT origin FROM replication_origin WHERE timetoken = ?")
          return try select.first(timetoken.rawValue) {
            try MessageOrigin(decoding: $0.bytes(at: 0))
          }
        })
    }
  }

  private func write(
    _ bodies: [Record.Body], to lane: OutboxLanes.Lane, in db: Database
  ) throws -> [RecordNumber] {
    let values = try StoredState.values(db)
    var outbox = try Outbox(db)
    let names = try bodies.map { try add($0, to: lane, &outbox, values.key) }
    try outbox.store()
    return names
  }

  @discardableResult
  private func add(
    _ body: Record.Body, to lane: OutboxLanes.Lane, _ outbox: inout Outbox<StoredRows>,
    _ key: UInt32
  ) throws -> RecordNumber {
    do {
      return try outbox.add(body, at: engine.clockTicks, to: lane) { name, part in
        try ring.seal(part, as: name, under: key)
      }
    } catch let error as RecordError where error == .tooManyParts {
      throw EngineError(
        .invalidArgument, "a change of a home that is one of several has more than 32 MiB",
        hint: "publish or change less at a time")
    }
  }

  /// What the relay appends now.
  func records(
    _ next: @escaping @Sendable (StoredRows) throws -> [SealedRecord]
  ) async throws(EngineError) -> [SealedRecord] {
    try await engine.access.read(during: "reading the outbox") { try next(StoredRows(db: $0)) }
  }

  /// Whether everything that this member has promised is in the log.
  func isOutboxEmpty() async throws(EngineError) -> Bool {
    try await engine.access.read(during: "reading the outbox") { db in
      try db.number("SELECT 1 FROM replication_outbox LIMIT 1") == nil
    }
  }

  /// The oldest key that this member's outbox or tail needs.
  func oldestKey() async throws(EngineError) -> UInt32 {
    // In the turn of the writer, as no batch is being taken then.
    try await engine.commits.run(during: "looking for keys") { [self] db in
      let applier = try applier.withLock(\.self) ?? StoredState.load(db, now: now())
      return try [StoredRows(db: db).oldestKey, applier.oldestKey].compactMap(\.self)
        .min().map { min($0, applier.state.values.key) } ?? applier.state.values.key
    }
  }

  // MARK: The log

  /// Applies a part of the log.
  func take(_ batch: Applier.Batch) async throws -> Taken {
    if let idle = applier.withLock({ applier in
      applier.flatMap { $0.isIdle(batch, syncInterval: syncInterval) ? View($0) : nil }
    }) {
      return Taken(outcomes: [], results: [:], renamed: [:], view: idle, alarm: nil)
    }
    let (taken, applied) = try await engine.commits.run(during: "applying the log") {
      [self] db in try take(batch, db)
    }
    applier.withLock { $0 = applied }
    return taken
  }

  private func take(_ batch: Applier.Batch, _ db: Database) throws -> (Taken, Applier) {
    var applier = try applier.withLock { $0.take() } ?? StoredState.load(db, now: now())
    var outbox = try Outbox(db)
    for entry in batch.entries where entry.sequence > applier.state.position {
      // Others can write this process's name on a record, and not seal it.
      if try outbox.contradicts(entry.record), (try? ring.open(entry.record)) != nil {
        throw ReplicationError.duplicated
      }
    }
    let oldestKey = applier.safeValues.oldestKey
    var tables = MessageTables(engine, db, serverTables: serverTables)
    var outcomes: [Applier.Outcome] = []
    var alarm: Applier.Alarm?
    do {
      try applier.take(
        batch, syncInterval: syncInterval, into: &tables, outcomes: &outcomes,
        open: ring.open)
    } catch let error as Applier.Alarm {
      alarm = error
    }
    for outcome in outcomes { try follow(outcome, applier, &outbox, db) }
    try AwaitedRecords.answer(outcomes, tables.results, db)
    var renamed: [RecordNumber: RecordNumber] = [:]
    if applier.safeValues.oldestKey > oldestKey {
      renamed = try reseal(&outbox, applier)
    }
    try outbox.store()
    try StoredState.store(applier, db)
    let taken = Taken(
      outcomes: outcomes, results: tables.results, renamed: renamed, view: View(applier),
      alarm: alarm)
    return (taken, applier)
  }

  /// Makes the home the only one: applies what is still in the outbox, and removes the tables of replication.
  func leaveAlone() async throws {
    try await engine.commits.run(during: "leaving the cluster") { [self] db in
      var applier = try StoredState.load(db, now: now())
      var tables = MessageTables(engine, db, serverTables: serverTables)
      var outbox = try Outbox(db)
      // Again, as an author can wait for another one.
      var outcomes: [Applier.Outcome] = []
      repeat {
        outcomes = []
        for author in try outbox.rows.authors {
          try applier.takeLast(
            outbox.rows.records(of: author), into: &tables, outcomes: &outcomes, open: ring.open)
        }
        try outbox.remove(appliedIn: applier.state)
      } while outcomes.contains { if case .applied = $0 { true } else { false } }
      guard try !outbox.rows.authors.contains(where: outbox.lanes.isOfThisDisk) else {
        throw ReplicationError(
          .state,
          "the outbox has records of this home that wait for others, which it does not have",
          hint: "let it reach its brokers, or a member's, and leave then")
      }
      try ReplicationSchema.remove(db)
    }
  }

  /// What belongs into the transaction that applied or undid a record.
  private func follow(
    _ outcome: Applier.Outcome, _ applier: Applier, _ outbox: inout Outbox<StoredRows>,
    _ db: Database
  ) throws {
    let key = applier.state.values.key
    switch outcome {
    case .applied(let name, let record, _):
      try outbox.rows.remove(through: name)
      guard case .leave(member) = record.body, !leaves.load(ordering: .relaxed) else { break }
      // Expelled: it joins again, with what it has if the log still begins before that.
      try add(.join(member, safe: applier.safe), to: .control, &outbox, key)
    case .undone(let records, let repair):
      try outbox.takeBack(records)
      try ReplicationSchema.noteUndone(repair, db)
      // Readers look at what they have read.
      try engine.noteChange(in: db)
      guard repair.from < repair.to else { break }
      try add(.repair(from: repair.from, to: repair.to), to: .control, &outbox, key)
    case .continued(let name): try outbox.noteContinued(name)
    case .gap, .repeated, .retiredKey: break
    }
  }

  /// Takes new numbers for what was written under a key that is gone.
  private func reseal(
    _ outbox: inout Outbox<StoredRows>, _ applier: Applier
  ) throws -> [RecordNumber: RecordNumber] {
    var random = SystemRandomNumberGenerator()
    return try outbox.reseal(
      before: applier.safeValues.oldestKey, using: &random, open: ring.open
    ) { name, part in
      try ring.seal(part, as: name, under: applier.state.values.key)
    }
  }
}

/// The seals of a ring, one call at a time.
private final class SharedRing: Sendable {
  private let ring: Mutex<RingSeal>

  init(_ ring: sending RingSeal) { self.ring = Mutex(ring) }

  func seal(_ part: [UInt8], as name: RecordNumber, under key: UInt32) throws -> SealedRecord {
    try ring.withLock { try $0.seal(part, as: name, under: key) }
  }

  func open(_ record: SealedRecord) throws -> [UInt8] { try ring.withLock { try $0.open(record) } }
}
