package import DataVault
internal import FileLayer
package import GRDB
package import MessagingQueue
package import Replication
internal import VaultCrypto
package import VaultedDatabase

/// Brings the changes of a command into the log while another process replicates the home.
///
/// It writes into the outbox and waits until that process has applied the record. Without that process it writes nothing:
/// only a process that has drawn authors knows that a number is new. Leases are with the server.
package final class OutboxWriter: EngineReplica {
  /// How often it looks for a result.
  private static let interval = Duration.milliseconds(20)

  private let database: ShardDatabase
  private let home: DataVaultHome
  private let patience: Duration

  /// Lets an engine's changes go through the outbox.
  ///
  /// - Parameters:
  ///   - engine: of a member's home.
  ///   - home: the engine's.
  ///   - vault: the messaging vault of the home, unlocked.
  ///   - patience: how long a change waits until it is applied. Default: 10 seconds.
  /// - Throws: ``ReplicationError`` unless the home is a member's; the errors of the vault and the engine.
  @discardableResult
  package static func attach(
    to engine: MessagingEngine, of home: DataVaultHome, vault: Vault,
    patience: Duration = .seconds(10)
  ) async throws -> OutboxWriter {
    let member = try await engine.access.read(
      during: "reading the member", ReplicationSchema.member)
    guard let member else { throw ReplicationError.noMember }
    let cluster = try await NodeVault(vault).cluster()
    let database = ShardDatabase(
      engine, member: member, ring: RingSeal(cluster.ring, random: .unshared()),
      newestKey: cluster.ring.keyNumbers.upperBound, syncInterval: .zero, serverTables: [],
      now: { SystemTimeSource.sinceBoot })
    let writer = OutboxWriter(database, home, patience)
    engine.attach(writer)
    return writer
  }

  private init(_ database: ShardDatabase, _ home: DataVaultHome, _ patience: Duration) {
    self.database = database
    self.home = home
    self.patience = patience
  }

  private var access: PoolAccess { database.engine.access }

  package func post(
    _ messages: [Message], for callers: Int, in db: Database
  ) throws -> PostedRecord {
    try requireServer()
    let name = try database.post(messages, in: db)
    if callers > 0 { try AwaitedRecords.expect(name, db) }
    return PostedRecord(name)
  }

  package func places(of record: PostedRecord) async throws(EngineError) -> [Timetoken] {
    try await result(of: record.name(), during: ReplicaNode.publishing).places()
  }

  package func perform(
    _ operation: QueueOperation
  ) async throws(EngineError) -> QueueOperation.Result {
    try await result(of: database.body(of: operation), during: "changing the queue").operation()
  }

  package func change(_ rows: RowChanges) async throws(EngineError) {
    _ = try await result(of: .rows(rows.bytes), during: "changing rows").places()
  }

  /// Makes a node a member, and waits until no broker can forget that.
  ///
  /// - Parameter within: how long; at least the interval of the brokers' syncs and a bit.
  package func addMember(_ member: MemberID, within limit: Duration) async throws(EngineError) {
    try await write(.join(member, safe: nil))
    try await wait(limit, "the brokers could still forget the new member") { db in
      guard let since = try Self.since(member, db) else { return false }
      return try since <= StoredState.safe(db)
    }
  }

  /// Takes a member out that does not come back.
  ///
  /// - Throws: `invalidArgument` if it is no member, or this home.
  package func removeMember(_ member: MemberID) async throws(EngineError) {
    guard member != database.member else {
      throw EngineError(
        .invalidArgument, "member \(member.hexadecimal) is this home",
        hint: "datavaultd cluster leave makes it the only one again")
    }
    let since = try await access.read(during: "reading the members") { db in
      try Self.since(member, db)
    }
    guard since != nil else {
      throw EngineError(
        .invalidArgument, "the cluster has no member \(member.hexadecimal)",
        hint: "datavaultd cluster status lists its members")
    }
    try await write(.leave(member))
  }

  /// The record with which a node became a member; nil if it is none.
  private static func since(_ member: MemberID, _ db: Database) throws -> Int64? {
    try db.number("SELECT since FROM replication_member WHERE member = ?", member.bytes)
  }

  /// Lets all members seal under a key from now on, if each has said that it has it.
  ///
  /// - Throws: `invalidArgument` if one has not.
  package func switchKey(to key: UInt32) async throws(EngineError) {
    let fault = "switched to key \(key): not every member has said that it has it"
    try await require(fault) { db in
      try db.number("SELECT 1 FROM replication_member WHERE newest_key < ?", Int64(key)) == nil
    }
    try await write(.keySwitch(key))
    // If a member has joined in between, the switch counts with its report.
    try await require(fault) { try StoredState.values($0).key >= key }
  }

  /// Lets all members skip what is sealed under older keys, if none of them needs one.
  ///
  /// - Throws: `invalidArgument` if one does.
  package func dropKeys(before key: UInt32) async throws(EngineError) {
    try await write(.keyDrop(key))
    try await require("dropped the keys before \(key): a member still needs one") {
      try StoredState.values($0).oldestKey >= key
    }
  }

  private func require(
    _ fault: String, _ holds: @escaping @Sendable (Database) throws -> Bool
  ) async throws(EngineError) {
    guard try await access.read(during: "reading the keys", holds) else {
      throw EngineError(
        .invalidArgument, "the members have not \(fault)",
        hint: "hand the key on to all, restart their servers, and try again after a minute")
    }
  }

  private func write(_ body: Record.Body) async throws(EngineError) {
    _ = try await result(of: body, during: "changing the cluster").places()
  }

  /// Writes a record, and waits until it is applied.
  private func result(
    of body: Record.Body, during operation: String
  ) async throws(EngineError) -> RecordResult {
    try requireServer()
    let name = try await database.write([body], isAwaited: true)[0]
    return try await result(of: name, during: operation)
  }

  /// Waits until a record is applied.
  ///
  /// - Throws: `outcomeUnknown` alone, because the record is in the outbox.
  private func result(
    of name: RecordNumber, during operation: String
  ) async throws(EngineError) -> RecordResult {
    let end = SystemTimeSource.sinceBoot + patience
    while SystemTimeSource.sinceBoot < end, !Task.isCancelled {
      let answer: AwaitedRecords.Answer
      do {
        answer = try await access.read(during: operation) {
          try AwaitedRecords.answer(to: name, $0)
        }
      } catch {
        throw ReplicaNode.unknownOutcome(
          of: operation, "its result cannot be read: \(error.message)", because: error)
      }
      switch answer {
      case .result(let result): return result
      case .gone:
        throw ReplicaNode.unknownOutcome(of: operation, "the server has been started again since")
      case .open: try? await Task.sleep(for: Self.interval)
      }
    }
    throw ReplicaNode.unknownOutcome(of: operation)
  }

  private func requireServer() throws(EngineError) {
    guard !MemberNode.isRunning(on: home) else { return }
    throw EngineError(
      .replicated, "no server replicates this home; nothing was changed",
      hint: "start datavaultd serve on it first")
  }

  private func wait(
    _ limit: Duration, _ fault: String, _ isDone: @escaping @Sendable (Database) throws -> Bool
  ) async throws(EngineError) {
    let end = SystemTimeSource.sinceBoot + limit
    while try await !access.read(during: "waiting for the log", isDone) {
      guard SystemTimeSource.sinceBoot < end, !Task.isCancelled else {
        throw EngineError(
          .outcomeUnknown, fault,
          hint: "see that datavaultd serve runs on this home and reaches its brokers")
      }
      try? await Task.sleep(for: .seconds(1))
    }
  }

  // MARK: What the server has

  package var receiveInterval: Duration { Self.interval }
  package var longestLease: Duration { EngineConfiguration.maximumLeaseDuration }
  package var sweeps: Bool { false }
  package var isCurrent: Bool { true }
  package func undone(in db: Database) throws -> [UndoneRange] {
    try ReplicationSchema.undone(db)
  }
  package func repaired(in db: Database) throws -> [PlaceRange] {
    try StoredState.values(db).repaired.map(PlaceRange.init)
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
    .replicated, "the server gives and settles the leases of a home that is one of several",
    hint: "use a client of datavaultd serve")
}
