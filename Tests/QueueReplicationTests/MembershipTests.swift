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
private let sharedItem = "shared"

/// A home with a vault of its own, and its node over a log in memory.
private final class MemberHome: Sendable {
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
  func provision() async throws {
    let engine = try await engine()
    var settings = ClusterSettings(addresses: ["nats://127.0.0.1:4222"])
    settings.syncSeconds = 0
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
      to: engine, ring: NodeVault(vault).cluster().ring, serverTables: ["note"],
      time: try SystemTimeSource(), patience: .seconds(5))
    let result = try await body(engine, writer)
    try await engine.stop()
    return result
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

@Suite struct MembershipTests {
  private let folder = ScratchFolder()
  private let log = MemoryLog()

  private var copy: FilePath { FilePath(folder.path("copy.db")) }

  @Test func `a home with messages becomes a cluster, grows, and is one home again`() async throws {
    let first = try await MemberHome(in: folder, "first")
    let second = try await MemberHome(in: folder, "second")
    let alone = try await first.engine()
    try await alone.publish(Message("before"))
    try await alone.stop()
    try await first.provision()

    try await first.whileReplicating(over: log) { engine, _ in
      try await engine.publish(Message("on one"))
      let request = try await second.request()
      let invitation = try await first.asCommand { [copy] _, writer in
        try await Membership.invite(
          request.bytes, confirmed: request.fingerprint(), by: writer, of: first.home,
          vault: first.vault, sharing: sharedItem, copyingTo: copy)
      }
      try await engine.publish(Message("after the copy"))

      let joining = try await second.engine()
      try await Membership.join(
        invitation.bytes, confirmed: invitation.fingerprint, copy: copy, joining,
        vault: second.vault, sharing: sharedItem)
      let shared = try await second.vault.item(sharedItem).bytes.array()
      #expect(shared == [UInt8](repeating: 7, count: 32))
      let settings = try await NodeVault(second.vault).cluster().settings
      #expect(settings.addresses == ["nats://127.0.0.1:4222"])
      try await joining.stop()

      try await second.whileReplicating(over: log) { other, member in
        try await other.publish(Message("on the other"))
        let all = ["before", "on one", "after the copy", "on the other"]
        try await eventually("both have all") {
          try await [first.texts(engine), second.texts(other)].allSatisfy { $0 == all }
        }
        #expect(try await first.schema(engine) == second.schema(other))
        try await member.node.leave(within: .seconds(10))
      }
    }

    // Each home goes on by itself, with all messages.
    let left = try await second.engine()
    try await MemberNode.leaveAlone(left, of: second.home, vault: second.vault, serverTables: [])
    try await left.stop()
    let second2 = try await second.engine()
    #expect(!second2.isReplicated)
    try await second2.publish(Message("alone again"))
    #expect(try await second.texts(second2).last == "alone again")
    try await second2.stop()
    #expect(try await second.vault.itemNames().allSatisfy { !$0.name.hasPrefix("replication.") })
  }

  @Test func `a home that leaves without brokers keeps what was only in its outbox`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    try await home.whileReplicating(over: log) { engine, _ in
      try await engine.publish(Message("in the log"))
      log.setDown(true)
      _ = try await engine.post([Message("promised")])
    }
    let engine = try await home.engine()
    try await MemberNode.leaveAlone(engine, of: home.home, vault: home.vault, serverTables: [])
    try await engine.stop()
    let alone = try await home.engine()
    #expect(try await home.texts(alone) == ["in the log", "promised"])
    // As after a kill between the database and the vault.
    _ = try await NodeVault(home.vault).keys()
    try await MemberNode.leaveAlone(alone, of: home.home, vault: home.vault, serverTables: [])
    #expect(try await home.vault.itemNames().allSatisfy { !$0.name.hasPrefix("replication.") })
    try await alone.stop()
  }

  @Test func `a command changes rows through the outbox, and learns of a conflict`() async throws {
    let home = try await MemberHome(in: folder, "home")
    let alone = try await home.engine()
    try await alone.write {
      try $0.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
    }
    try await alone.stop()
    try await home.provision()
    try await home.whileReplicating(over: log) { engine, _ in
      try await home.asCommand { command, writer in
        let rows = try await command.read { db in try Self.inserted(1, "a", db) }
        try await writer.change(rows)
        #expect(
          try await engine.read { try String.fetchAll($0, sql: "SELECT text FROM note") } == ["a"])
        let error = await #expect(throws: EngineError.self) { try await writer.change(rows) }
        #expect(error?.code == .busy)
      }
    }
  }

  /// The changeset of a row that is inserted into a table of the same form.
  private static func inserted(_ id: Int, _ text: String, _ db: Database) throws -> RowChanges {
    let queue = try DatabaseQueue()
    return try queue.write { db in
      try db.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
      let recorder = try RowRecorder(db, tables: ["note"])
      try db.execute(sql: "INSERT INTO note VALUES (?, ?)", arguments: [id, text])
      return try recorder.finish()
    }
  }

  @Test func `a copy serves its joiner alone, and an empty home alone`() async throws {
    let first = try await MemberHome(in: folder, "first")
    let joiner = try await MemberHome(in: folder, "joiner")
    let other = try await MemberHome(in: folder, "other")
    try await first.provision()
    let invitation = try await first.whileReplicating(over: log) { _, _ in
      let request = try await joiner.request()
      return try await first.asCommand { [copy] _, writer in
        try await Membership.invite(
          request.bytes, confirmed: request.fingerprint(), by: writer, of: first.home,
          vault: first.vault, sharing: sharedItem, copyingTo: copy)
      }
    }
    func join(_ home: MemberHome, _ confirmed: Fingerprint) async throws {
      let engine = try await home.engine()
      do {
        try await Membership.join(
          invitation.bytes, confirmed: confirmed, copy: copy, engine, vault: home.vault,
          sharing: sharedItem)
      } catch {
        try await engine.stop()
        throw error
      }
      try await engine.stop()
    }
    await #expect(throws: (any Error).self) { try await join(other, invitation.fingerprint) }
    let wrong = try #require(Fingerprint("AAAAA-AAAAA-AAAAA-AAAAA-AAAAA"))
    await #expect(throws: (any Error).self) { try await join(joiner, wrong) }
    let used = try await joiner.engine()
    try await used.publish(Message("own"))
    try await used.stop()
    await #expect(throws: ReplicationError.self) { try await join(joiner, invitation.fingerprint) }
    let engine = try await joiner.engine()
    #expect(try await joiner.texts(engine) == ["own"])
    #expect(!engine.isReplicated)
    try await engine.stop()
  }

  @Test func `all members get a new key, switch to it, and drop the old one`() async throws {
    let first = try await MemberHome(in: folder, "first")
    let second = try await MemberHome(in: folder, "second")
    try await first.provision()
    let request = try await second.request()
    let (bytes, confirmed) = (request.bytes, try request.fingerprint())
    let invitation = try await first.whileReplicating(over: log) { _, _ in
      try await first.asCommand { [copy] _, writer in
        try await Membership.invite(
          bytes, confirmed: confirmed, by: writer, of: first.home, vault: first.vault,
          sharing: sharedItem, copyingTo: copy)
      }
    }
    let joining = try await second.engine()
    try await Membership.join(
      invitation.bytes, confirmed: invitation.fingerprint, copy: copy, joining,
      vault: second.vault, sharing: sharedItem)
    try await joining.stop()

    #expect(try await NodeVault(first.vault).addKey() == 2)
    try await first.whileReplicating(over: log) { engine, _ in
      try await second.whileReplicating(over: log) { _, _ in
        // The second one has not got it.
        let error = await #expect(throws: EngineError.self) {
          try await first.asCommand { _, writer in try await writer.switchKey(to: 2) }
        }
        #expect(error?.code == .invalidArgument)
      }
      let handed = try await Membership.handOn(
        to: bytes, confirmed: confirmed, vault: first.vault, sharing: sharedItem)
      try await Membership.takeKeys(
        of: handed.bytes, confirmed: handed.fingerprint, vault: second.vault)
      try await second.whileReplicating(over: log) { other, _ in
        try await eventually("both have said that they have the key") {
          try await first.asCommand { _, writer in
            (try? await writer.switchKey(to: 2)) != nil
          }
        }
        try await engine.publish(Message("under the new key"))
        #expect(log.records.last { $0.key == 2 } != nil)
        try await eventually("no member needs the old key") {
          try await first.asCommand { _, writer in
            (try? await writer.dropKeys(before: 2)) != nil
          }
        }
        try await eventually("the other one reads it") {
          try await second.texts(other).last == "under the new key"
        }
      }
    }
    try await first.whileReplicating(over: log) { engine, _ in
      #expect(try await NodeVault(first.vault).cluster().ring.keyNumbers == 2...2)
      try await engine.publish(Message("after the drop"))
    }
  }

  @Test func `one process replicates a home`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    try await home.whileReplicating(over: log) { _, _ in
      await #expect(throws: ReplicationError.self) {
        _ = try await home.whileReplicating(over: log) { _, _ in true }
      }
    }
  }

  @Test func `settings are read as they were written`() throws {
    var settings = ClusterSettings(
      addresses: ["tls://a:4222", "tls://b:4222"], authority: "PEM \"x\"\n")
    settings.logsIn = false
    settings.syncSeconds = 0
    #expect(try ClusterSettings(parsing: settings.text) == settings)
    for text in [
      "", "{}", "[]", #"{"version":2}"#,
      #"{"version":1,"addresses":[],"login":true,"syncSeconds":1}"#,
    ] {
      #expect(throws: ReplicationError.self) { try ClusterSettings(parsing: Array(text.utf8)) }
    }
  }
}
