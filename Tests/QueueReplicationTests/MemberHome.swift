import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import SystemPackage
import TestSupport
import Testing
import VaultCrypto
import VaultedDatabase

/// An item of the vault that all members share.
let sharedItem = "shared"

/// A home with a vault of its own, and its node over a log in memory.
final class MemberHome: Sendable {
  let home: DataVaultHome
  let vault: Vault

  init(in folder: ScratchFolder, _ name: String) async throws {
    home = DataVaultHome(FilePath(folder.path(name)), vaultParameters: .cheap)
    vault = try await Vault.create(
      .messaging, in: home.store, credentials: .standard, parameters: .cheap)
  }

  func engine() async throws -> MessagingEngine {
    try await MessagingEngine.start(home, vault: vault)
  }

  /// Runs `body` while the home's node runs over `log`.
  @discardableResult
  func whileReplicating<Result>(
    over log: MemoryLog, _ body: (MessagingEngine, MemberNode) async throws -> Result
  ) async throws -> Result {
    let engine = try await engine()
    let time = try SystemTimeSource()
    var configuration = TestShard.configuration
    configuration.serverTables = ["note"]
    configuration.reportInterval = .milliseconds(100)
    let member = try await MemberNode.start(
      engine, of: home, vault: vault, configuration: configuration, time: time
    ) { _, _ in
      MemberNode.Connection(
        log: MemoryLogConnection(log) { time.sinceBoot }, members: MemoryExchange(), close: {})
    }
    let running = Task { try await member.run() }
    let result: Result
    do {
      result = try await body(engine, member)
    } catch {
      running.cancel()
      try? await engine.stop()
      throw error
    }
    running.cancel()
    _ = await running.result
    try await engine.stop()
    return result
  }

  /// Makes the home the first member.
  ///
  /// - Parameter syncSeconds: how long brokers can forget a record.
  func provision(syncSeconds: Int = 0) async throws {
    let engine = try await engine()
    var settings = ClusterSettings(addresses: ["nats://127.0.0.1:4222"])
    settings.syncSeconds = syncSeconds
    let cluster = try await Membership.prepareFirst(engine, vault: vault, settings: settings)
    try await Membership.makeFirst(engine, vault: vault, shard: cluster.ring.shard)
    try await vault.set(
      SecretBytes(copying: [UInt8](repeating: 7, count: 32)), kind: .binary, for: sharedItem)
    try await engine.stop()
  }

  /// Lets a second engine, as a command has it, write into the outbox.
  func asCommand<Result>(
    _ body: (MessagingEngine, OutboxWriter) async throws -> Result
  ) async throws -> Result {
    let engine = try await engine()
    let writer = try await OutboxWriter.attach(
      to: engine, of: home, vault: vault, patience: .seconds(5))
    do {
      let result = try await body(engine, writer)
      try await engine.stop()
      return result
    } catch {
      try? await engine.stop()
      throw error
    }
  }

  func request() async throws -> JoinRequest {
    let keys = try await NodeVault(vault).keys()
    return try JoinRequest(member: keys.member(), keys: keys)
  }

  /// Tables, indexes and triggers.
  func schema(_ engine: MessagingEngine) async throws -> [String] {
    try await engine.read { db in
      try String.fetchAll(
        db,
        sql:
          "SELECT type || ' ' || name || ' ' || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
      )
    }
  }

  func texts(_ engine: MessagingEngine) async throws -> [String] {
    try await engine.read { db in
      try Data.fetchAll(db, sql: "SELECT payload FROM message ORDER BY timetoken")
    }.map { String(decoding: $0, as: UTF8.self) }
  }
}
