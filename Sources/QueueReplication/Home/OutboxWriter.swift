package import FileLayer
package import GRDB
package import MessagingQueue
package import Replication
internal import VaultCrypto

/// Brings the changes of a command into the log while another process replicates the home.
///
/// It writes into the outbox and waits until that process has applied the record. Messages go through the server's
/// protocols.
package final class OutboxWriter: EngineReplica {
  private static let interval = Duration.milliseconds(20)

  private let database: ShardDatabase
  private let time: any TimeSource
  private let patience: Duration

  /// Lets an engine's changes go through the outbox.
  ///
  /// - Parameters:
  ///   - engine: of a member's home.
  ///   - patience: how long a change waits until it is applied.
  /// - Throws: ``ReplicationError`` unless the home is a member's; the errors of the engine.
  @discardableResult
  package static func attach(
    to engine: MessagingEngine, ring: borrowing KeyRing, serverTables: Set<String>,
    time: any TimeSource, patience: Duration = .seconds(10)
  ) async throws -> OutboxWriter {
    let member = try await engine.access.read(
      during: "reading the member", ReplicationSchema.member)
    guard let member else { throw ReplicationError.noMember }
    let database = ShardDatabase(
      engine, member: member, ring: RingSeal(ring, random: .unshared()),
      newestKey: ring.keyNumbers.upperBound, syncInterval: .zero, serverTables: serverTables,
      now: { time.sinceBoot })
    let writer = OutboxWriter(database, time, patience)
    engine.attach(writer)
    return writer
  }

  private init(_ database: ShardDatabase, _ time: any TimeSource, _ patience: Duration) {
    self.database = database
    self.time = time
    self.patience = patience
  }

  private var access: PoolAccess { database.engine.access }

  package func change(_ rows: RowChanges) async throws(EngineError) {
    try await write(.rows(rows.bytes))
  }

  /// Makes a node a member, and waits until no broker can forget that.
  ///
  /// - Parameter within: how long; at least the interval of the brokers' syncs and a bit.
  package func addMember(_ member: MemberID, within limit: Duration) async throws(EngineError) {
    try await write(.join(member, safe: nil))
    let time = time
    try await wait(limit, "the brokers could still forget the new member") { db in
      let applier = try StoredState.load(db, now: time.sinceBoot)
      return applier.state.members[member].map { $0.since <= applier.safe } ?? false
    }
  }

  /// Takes a member out that does not come back.
  package func removeMember(_ member: MemberID) async throws(EngineError) {
    try await write(.leave(member))
  }

  /// Lets all members seal under a key from now on, if each has said that it has it.
  ///
  /// - Throws: `invalidArgument` if one has not.
  package func switchKey(to key: UInt32) async throws(EngineError) {
    try await write(.keySwitch(key))
    try await require("switched to key \(key): not every member has said that it has it") {
      $0.key >= key
    }
  }

  /// Lets all members skip what is sealed under older keys, if none of them needs one.
  ///
  /// - Throws: `invalidArgument` if one does.
  package func dropKeys(before key: UInt32) async throws(EngineError) {
    try await write(.keyDrop(key))
    try await require("dropped the keys before \(key): a member still needs one") {
      $0.oldestKey >= key
    }
  }

  private func require(
    _ fault: String, _ holds: @escaping @Sendable (ShardState.Values) -> Bool
  ) async throws(EngineError) {
    let values = try await access.read(during: "reading the keys", StoredState.values)
    guard holds(values) else {
      throw EngineError(
        .invalidArgument, "the members have not \(fault)",
        hint: "hand the key on to all, restart their servers, and try again after a minute")
    }
  }

  /// Writes a record, and waits until it is applied.
  private func write(_ body: Record.Body) async throws(EngineError) {
    let name = try await database.write([body])[0]
    try await wait(patience, "no process has applied the change, which is in the outbox") { db in
      let number = try db.number(
        "SELECT number FROM replication_author WHERE author = ?", name.author.bytes)
      return (number ?? 0) >= Int64(clamping: name.number)
    }
    let refusal = try await access.read(during: "reading the outcome") { db in
      try EngineStatement(
        db, "SELECT reason FROM replication_refusal WHERE author = ? AND number = ?"
      ).first(name.author.bytes, Int64(clamping: name.number)) { $0.text(at: 0) ?? "" }
    }
    switch refusal {
    case nil: return
    case .some(""):
      throw EngineError(.busy, "the rows were changed at the same time", hint: "call it again")
    case .some(let reason): throw EngineError(.invalidArgument, reason)
    }
  }

  private func wait(
    _ limit: Duration, _ fault: String, _ isDone: @escaping @Sendable (Database) throws -> Bool
  ) async throws(EngineError) {
    let end = time.sinceBoot + limit
    while try await !access.read(during: "waiting for the log", isDone) {
      guard time.sinceBoot < end, !Task.isCancelled else {
        throw EngineError(
          .outcomeUnknown, fault,
          hint: "see that datavaultd serve runs on this home and reaches its brokers")
      }
      try? await Task.sleep(for: Self.interval)
    }
  }

  // MARK: What needs the server

  package var receiveInterval: Duration { Self.interval }
  package var longestLease: Duration { EngineConfiguration.maximumLeaseDuration }
  package var sweeps: Bool { false }
  package var isCurrent: Bool { true }
  package func undone(in db: Database) throws -> [UndoneRange] {
    try ReplicationSchema.undone(db)
  }
  package func readingPlace(_ place: Timetoken) -> Timetoken { place }

  package func post(
    _ messages: [Message], isAwaited: Bool, in db: Database
  ) throws -> PostedRecord {
    throw Self.needsServer
  }

  package func places(of record: PostedRecord) async throws(EngineError) -> [Timetoken] {
    throw Self.needsServer
  }

  package func perform(
    _ operation: QueueOperation
  ) async throws(EngineError) -> QueueOperation.Result {
    throw Self.needsServer
  }

  package func receive(
    from channel: Channel, for consumer: Consumer, maximumCount: Int, lease: Duration
  ) async throws(EngineError) -> [Delivery] {
    throw Self.needsServer
  }

  package func settle(
    _ tokens: [LeaseToken], _ settlement: MessagingQueue.Settlement
  ) async throws(EngineError) -> MessagingQueue.Settlement.Outcome {
    throw Self.needsServer
  }

  private static let needsServer = EngineError(
    .replicated, "messages of a home that is one of several go through its server",
    hint: "use a client of datavaultd serve")
}
