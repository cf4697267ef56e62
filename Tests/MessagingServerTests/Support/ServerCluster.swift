import ApplicationStore
import DataVault
import FileLayer
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Synchronization
import TestSupport
import VaultCrypto
import VaultedDatabase

@testable import MessagingServer

/// Two servers in this process whose homes share a log in memory.
struct ServerCluster: Sendable {
  /// A server, and its way to the log.
  struct Member: Sendable {
    let server: ServerFixture
    let log: MemoryLogConnection
  }

  let shard: TestShard
  let a: Member
  let b: Member

  /// Runs `body` beside the servers, and stops them.
  static func run(
    _ configure: @escaping @Sendable (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (ServerCluster) async throws -> Void
  ) async throws {
    let shard = try TestShard()
    let key = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
    let keyBytes = SharedKey(key)
    try await member(1, of: shard, keyBytes, configure, isFirst: true) { a in
      try await member(2, of: shard, keyBytes, configure, isFirst: false) { b in
        try await body(ServerCluster(shard: shard, a: a, b: b))
      }
    }
  }

  /// The key of the applications' tables, which all members have.
  private final class SharedKey: Sendable {
    let key: SecretBytes

    init(_ key: consuming SecretBytes) { self.key = key }
  }

  /// The node of a member, once it has started.
  private final class StartedNode: Sendable {
    let node = Mutex<ReplicaNode?>(nil)
  }

  private static func member(
    _ number: UInt128, of shard: TestShard, _ key: SharedKey,
    _ configure: (inout ServerConfiguration) -> Void, isFirst: Bool,
    _ body: @escaping @Sendable (Member) async throws -> Void
  ) async throws {
    let time = try ShiftedTimeSource()
    let started = StartedNode()
    let log = MemoryLogConnection(shard.log) { time.sinceBoot }
    try await ServerFixture.run(
      { configuration in
        configuration.replicate = { engine, _ in
          let node = try await ReplicaNode.start(
            engine, member: MemberID(number), ring: try shard.keyRing(), log: log,
            members: shard.exchange, time: time, configuration: nodeConfiguration)
          started.node.withLock { $0 = node }
          return { try await node.run() }
        }
        configure(&configuration)
      },
      preparing: { home, vault in
        _ = try await vault.item(
          ApplicationKeys.itemName, orStoring: key.key.copy(), kind: .binary)
        let engine = try await MessagingEngine.start(home, vault: vault)
        // Both begin with the same empty tables, as if one had copied them.
        _ = try await ApplicationStore.open(engine, vault: vault)
        try await engine.write { db in
          try ReplicationSchema.make(shard: shard.shard, member: MemberID(number), db)
        }
        try await engine.stop()
      }, addsApplications: isFirst
    ) { server in
      if isFirst {
        let node = try await eventually("a node") { started.node.withLock { $0 } }
        try await shard.makeOwner(node, MemberID(number), time, nodeConfiguration.ownership)
      }
      try await body(Member(server: server, log: log))
    }
  }

  private static var nodeConfiguration: NodeConfiguration {
    var configuration = TestShard.configuration
    configuration.serverTables = ApplicationStore.replicatedTables
    TestShard.lengthenLeases(&configuration)
    // On a loaded machine a node is not cut off, but slow.
    configuration.longestBlindness = .seconds(5)
    return configuration
  }
}
