internal import FileLayer
internal import Foundation
package import GRDB
package import MessagingQueue
package import QueueReplication
package import Replication
package import TestSupport
internal import VaultCrypto

/// A shard's ring and log, for nodes in one process.
package final class TestShard: Sendable {
  package let log = MemoryLog()
  package let shard: ShardID
  /// Makes the tables of a server in a home, before that is a member.
  package let prepare: @Sendable (MessagingEngine) async throws -> Void
  private let ring: SecretBytes

  package init(
    keyCount: Int = 1,
    preparing prepare: @escaping @Sendable (MessagingEngine) async throws -> Void = { _ in }
  ) throws {
    self.prepare = prepare
    var ring = KeyRing(newShard: .unshared())
    for _ in 1..<keyCount { try ring.addKey(from: .unshared()) }
    shard = ring.shard
    self.ring = ring.encodedBytes()
  }

  package let exchange = MemoryExchange()

  package func keyRing() throws -> KeyRing { try KeyRing(decoding: ring) }

  /// Short times, so that tests take seconds; callers are patient, because a loaded machine is slow.
  package static var configuration: NodeConfiguration {
    var configuration = NodeConfiguration()
    configuration.syncInterval = .zero
    configuration.readWait = .milliseconds(50)
    configuration.patience = .seconds(60)
    configuration.receiveInterval = .milliseconds(50)
    configuration.ownership.heartbeatInterval = .milliseconds(100)
    configuration.ownership.heartbeatLimit = .seconds(1)
    configuration.ownership.silence = .seconds(1)
    configuration.ownership.longestLease = .seconds(4)
    configuration.ownership.margin = .milliseconds(50)
    configuration.relay.patience = .milliseconds(500)
    configuration.relay.gapPause = .milliseconds(50)
    return configuration
  }

  /// Lets leases, and requests of nodes that are behind, last longer than a loaded machine is slow.
  ///
  /// ``TestNode/becomeOwner()`` spares the wait for leases of this length.
  package static func lengthenLeases(_ configuration: inout NodeConfiguration) {
    configuration.ownership.heartbeatInterval = .seconds(1)
    configuration.ownership.heartbeatLimit = .seconds(60)
    configuration.ownership.silence = .seconds(60)
    configuration.ownership.longestLease = .seconds(600)
  }

  /// Waits until a node owns the leases; its clock passes the wait for the leases of earlier owners.
  package func makeOwner(
    _ node: ReplicaNode, _ member: MemberID, _ time: ShiftedTimeSource, _ limits: Ownership.Limits
  ) async throws {
    let claim = try await eventually("a claim") { () -> UInt64? in
      let index = log.records.lastIndex { record in
        if case .epoch(_, _, member) = body(of: record) { true } else { false }
      }
      return index.map { log.firstSequence + UInt64($0) }
    }
    try await eventually("the claim is applied") { node.position >= claim }
    time.advance(by: limits.heartbeatLimit + limits.longestLease + limits.margin)
    try await eventually("an owner") { node.isOwner }
  }

  /// What a record of the log says; nil for one that no member has sealed.
  package func body(of record: SealedRecord) -> Replication.Record.Body? {
    guard let ring = try? keyRing(),
      let bytes = try? RingSeal(ring, random: .unshared()).open(record),
      let part = try? RecordPart(decoding: bytes)
    else { return nil }
    return (try? Replication.Record(decoding: part.share))?.body
  }
}

/// A node on a plain database in a folder of its own.
package final class TestNode: Sendable {
  package let shard: TestShard
  package let member: MemberID
  package let time: ShiftedTimeSource
  package let log: MemoryLogConnection
  package let engine: MessagingEngine
  package let node: ReplicaNode
  package let pool: DatabasePool
  private let folder: ScratchFolder
  private let ownership: Ownership.Limits
  private let running: Task<Void, any Error>

  /// - Parameter folder: of an earlier process of the same member; default: a new member's.
  package init(
    _ shard: TestShard, member number: UInt128, folder: ScratchFolder = ScratchFolder(),
    _ change: (inout NodeConfiguration) -> Void = { _ in }
  ) async throws {
    let time = try ShiftedTimeSource()
    self.time = time
    self.shard = shard
    self.folder = folder
    member = MemberID(number)
    log = MemoryLogConnection(shard.log) { time.sinceBoot }
    pool = try memberPool(at: folder.path("messaging.db"))
    let first = try MessagingEngine(pool: pool, time: time, isSecured: true)
    if !first.isReplicated {
      try await shard.prepare(first)
      try await first.write { [member] db in
        try ReplicationSchema.make(shard: shard.shard, member: member, db)
      }
    }
    engine = try MessagingEngine(pool: pool, time: time, isSecured: true)
    var configuration = TestShard.configuration
    change(&configuration)
    ownership = configuration.ownership
    let node = try await ReplicaNode.start(
      engine, member: member, ring: try shard.keyRing(), log: log, members: shard.exchange,
      time: time,
      configuration: configuration)
    self.node = node
    running = Task { try await node.run() }
  }

  /// Waits until this node owns the leases; its clock passes the wait for the leases of earlier owners.
  package func becomeOwner() async throws {
    try await shard.makeOwner(node, member, time, ownership)
  }

  /// The names of the records in the outbox.
  package func outbox() async throws -> Set<String> {
    try await pool.read {
      try String.fetchSet($0, sql: "SELECT hex(author) || ' ' || number FROM replication_outbox")
    }
  }

  /// Ends the process; its folder stays.
  @discardableResult
  package func stop() async -> ScratchFolder {
    running.cancel()
    _ = await running.result
    try? await engine.stop()
    return folder
  }

  /// Why the node has stopped.
  package func end() async -> (any Error)? {
    if case .failure(let error) = await running.result { error } else { nil }
  }

  package func texts(of channel: Channel) async throws -> [String] {
    try await pool.read { db in
      try Data.fetchAll(
        db,
        sql: """
          SELECT payload FROM message JOIN channel ON channel.id = channel_id WHERE name = ?
          ORDER BY timetoken
          """, arguments: [channel.name])
    }.map { String(decoding: $0, as: UTF8.self) }
  }

  /// All rows that the log decides, to compare nodes.
  package func rows() async throws -> [String] { try await replicatedRows(pool) }
}

/// The plain database of a member, which an earlier process of it can still be closing.
package func memberPool(at path: String) throws -> DatabasePool {
  var configuration = Configuration()
  configuration.busyMode = .timeout(30)
  return try DatabasePool(path: path, configuration: configuration)
}

/// All rows of a home that the log decides, to compare nodes.
package func replicatedRows(_ pool: DatabasePool) async throws -> [String] {
  try await pool.read { db in
    try [
      "SELECT * FROM message", "SELECT * FROM channel", "SELECT * FROM consumer",
      "SELECT * FROM position", "SELECT * FROM delivery", "SELECT * FROM dead_letter",
      "SELECT * FROM deduplication", "SELECT * FROM replication_origin",
      "SELECT * FROM replication_lease", "SELECT * FROM replication_member",
      "SELECT state FROM replication_state", "SELECT timetoken_high_water FROM engine",
    ].flatMap { sql in
      try Row.fetchAll(db, sql: sql).map { row in
        row.map { _, value in
          // A blob's description has its size alone.
          if case .blob(let data) = value.storage { return data.base64EncodedString() }
          return value.description
        }.joined(separator: "|")
      }
    }
  }
}

extension Channel {
  package static var orders: Channel {
    guard let channel = try? Channel("orders") else { preconditionFailure("a valid name") }
    return channel
  }
}

extension Message {
  package init(_ text: String, key: String? = nil, id: String? = nil) {
    self.init(
      channel: .orders, payload: Array(text.utf8), orderingKey: key, deduplicationID: id)
  }
}
