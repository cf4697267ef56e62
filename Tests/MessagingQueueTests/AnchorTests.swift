import DataVault
import FileLayer
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import Synchronization
import SystemPackage
import TestSupport
import Testing
import VaultedDatabase

/// The rollback anchor, from the engine to the vault and back.
@Suite struct AnchorTests {
  private let place = EngineHome()

  private func message(_ byte: UInt8) -> Message {
    Message(channel: .orders, payload: [byte])
  }

  /// Publishes through an engine that it starts and stops.
  private func publish(_ bytes: UInt8..., vault: Vault) async throws {
    try await place.withEngine(vault) { engine in
      for byte in bytes { try await engine.publish(message(byte)) }
    }
  }

  private func payloads(_ vault: Vault) async throws -> [[UInt8]] {
    try await place.withEngine(vault) { try await $0.history(of: .orders).map(\.payload) }
  }

  private func startCode(_ vault: Vault) async -> EngineError.Code? {
    await code { try await place.start(vault).stop() }
  }

  @Test
  func `a clean stop records an anchor in the vault, or keeps the old one without new commits`()
    async throws
  {
    let vault = try await place.makeVault()
    try await publish(1, vault: vault)
    let first = try #require(try await vault.anchor())
    #expect(await startCode(vault) == nil)
    #expect(try await vault.anchor() == first)
    try await publish(2, vault: vault)
    let second = try #require(try await vault.anchor())
    #expect(second.commitNumber > first.commitNumber && second.id != first.id)
  }

  @Test func `start() refuses an older copy of the database, unchanged, until it is accepted`()
    async throws
  {
    let vault = try await place.makeVault()
    try await publish(1, vault: vault)
    let copy = try place.databaseFiles()
    try await publish(2, vault: vault)
    #expect(try await payloads(vault) == [[1], [2]])
    try place.replaceDatabase(copy)
    #expect(await startCode(vault) == .rolledBack)
    #expect(try place.databaseFiles()["messaging.db"] == copy["messaging.db"])

    let accepted = try #require(
      try await MessagingEngine.acceptRollback(place.home, vault: vault))
    #expect(accepted.foundCommitNumber < accepted.expectedCommitNumber)
    #expect(try await payloads(vault) == [[1]])
    #expect(try await MessagingEngine.acceptRollback(place.home, vault: vault) == nil)
    // The accepted copy is an older copy in its turn after another publication.
    try await publish(3, vault: vault)
    try place.replaceDatabase(copy)
    #expect(await startCode(vault) == .rolledBack)
  }

  /// An export goes on behind its last message, and takes what is before it for exported.
  @Test(arguments: ["accepted", "salvaged", "beside an older vault"])
  func `an export is not continued if it lacks a message of an older copy`(
    change: String
  ) async throws {
    let vault = try await place.makeVault()
    try await place.withEngine(vault) { engine in
      try await engine.addConsumer(.default, of: .orders)
      for byte in 1...3 as ClosedRange<UInt8> { try await engine.publish(message(byte)) }
    }
    let (copy, vaultFile) = (try place.databaseFiles(), try place.vaultFile)
    let file = place.home.path.appending("orders.ndjson")
    try await place.withEngine(vault) { engine in
      try await engine.acknowledge(try await engine.receive(from: .orders).map(\.token))
      _ = try await engine.exportMessages(to: file)
    }
    try FileManager.default.moveItem(atPath: file.string, toPath: file.string + ".partial")
    try place.replaceDatabase(copy)
    switch change {
    case "accepted": try await MessagingEngine.acceptRollback(place.home, vault: vault)
    case "salvaged": _ = try await place.salvage(vault, acceptsRollback: true)
    default: try place.setVaultFile(vaultFile)
    }
    try await place.withEngine(vault) { engine in
      let count = try await engine.history(of: .orders).count
      #expect(count == 3)
      let error = await engineError { _ = try await engine.exportMessages(to: file) }
      #expect(error?.code == .alreadyExists)
      #expect(error?.message.contains("lacks message") == true)
    }
  }

  @Test func `a stop records an anchor for the commits of a killed engine`() async throws {
    let vault = try await place.makeVault()
    try await publish(1, vault: vault)
    let copy = try place.databaseFiles()
    let engine = try await place.start(vault)
    try await engine.publish(message(2))
    try await place.kill(engine)
    let reopened = try await place.unlockedVault()
    #expect(await startCode(reopened) == nil)
    try place.replaceDatabase(copy)
    #expect(await startCode(reopened) == .rolledBack)
  }

  @Test func `start() refuses a database whose log was deleted after a kill`() async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault) { $0.anchorCommitCount = 1 }
    try await engine.publish(message(1))
    try await eventually { try await vault.anchor() != nil }
    // The files that a kill would leave now, as no operation is under way.
    let killed = try place.databaseFiles()
    let vaultFile = try place.vaultFile
    #expect(killed["messaging.db-wal"]?.isEmpty == false)
    try await engine.stop()

    try place.setVaultFile(vaultFile)
    try place.replaceDatabase(killed.filter { $0.key == "messaging.db" })
    #expect(await startCode(vault) == .rolledBack)
    try place.replaceDatabase(killed)
    #expect(try await payloads(vault) == [[1]])
  }

  @Test(arguments: [
    "ALTER TABLE engine RENAME COLUMN anchors TO marks", "ALTER TABLE engine RENAME TO motor",
  ])
  func `a newer schema that keeps its anchors elsewhere is refused as newer, not as rolled back`(
    change: String
  ) async throws {
    let vault = try await place.makeVault()
    try await publish(1, vault: vault)
    #expect(try await vault.anchor() != nil)
    let opened = try await VaultedDatabase.open(place.home, vault: vault)
    try await opened.pool.write { db in
      try db.execute(sql: "\(change); PRAGMA user_version = 999")
    }
    try opened.close()
    let files = try place.databaseFiles()
    #expect(await startCode(vault) == .newerVersion)
    let accepting = await code {
      _ = try await MessagingEngine.acceptRollback(place.home, vault: vault)
    }
    #expect(accepting == .newerVersion)
    let verification = try await place.verify(vault)
    #expect(!verification.anchor.isMissing)
    #expect(verification.messages?.faults.map(\.rule) == ["schemaVersion"])
    let salvaging = await code { _ = try await place.salvage(vault, acceptsRollback: true) }
    #expect(salvaging == .newerVersion)
    #expect(try place.databaseFiles() == files)
  }

  @Test
  func `an engine starts after kills between the commit of an anchor and its write to the vault`()
    async throws
  {
    let store = RefusingStore(FileVaultStore(home: place.home.path, fileSystem: LinuxFileSystem()))
    let place = EngineHome(in: place, store: store)
    let vault = try await place.makeVault()
    try await place.withEngine(vault) { _ = try await $0.publish(message(0)) }
    let anchor = try await vault.anchor()
    // More kills than the database keeps anchors.
    for byte in 1...17 as ClosedRange<UInt8> {
      store.refuseWrites(true)
      try await place.withEngine(vault) { _ = try await $0.publish(message(byte)) }
      #expect(try await vault.anchor() == anchor)
    }
    store.refuseWrites(false)
    try await place.withEngine(vault) { _ = try await $0.publish(message(18)) }
    #expect(try await vault.anchor() != anchor)
    #expect(await code { try await place.start(vault).stop() } == nil)
  }

  @Test func `several engines on one file record their anchors in any order`() async throws {
    let vault = try await place.makeVault()
    let other = try await place.unlockedVault()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, vault) in [vault, other].enumerated() {
        group.addTask {
          for round in 0..<5 {
            let engine = try await place.start(vault) { $0.anchorCommitCount = 2 }
            for byte in 0..<4 {
              try await engine.publish(message(UInt8(number * 100 + round * 10 + byte)))
            }
            try await engine.stop()
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await payloads(vault).count == 40)
  }

  @Test func `an engine continues without a new anchor while its vault is locked`() async throws {
    var policy = VaultPolicy()
    policy.lockTimeoutSeconds = 60
    let vault = try await place.makeVault(policy: policy)
    try await publish(1, vault: vault)
    let anchor = try await vault.anchor()
    let engine = try await place.start(vault) { $0.anchorCommitCount = 1 }
    place.time.advance(by: .seconds(60))
    #expect(await vault.isLocked)
    for byte in 2...10 as ClosedRange<UInt8> { try await engine.publish(message(byte)) }
    try await engine.stop()
    let reopened = try await place.unlockedVault()
    #expect(try await reopened.anchor() == anchor)
    #expect(try await payloads(reopened).count == 10)
  }

  @Test func `lock() stores the engine's last anchor in the vault`() async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    try await engine.publish(message(1))
    await vault.lock()
    #expect(try await engine.settledState() == .refused(.vaultLocked))
    let reopened = try await place.unlockedVault()
    #expect(try await reopened.anchor() != nil)
  }

  @Test func `the engine records an anchor after its interval, too`() async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault) { $0.anchorInterval = .milliseconds(5) }
    try await engine.publish(message(1))
    try await eventually { try await vault.anchor() != nil }
    try await engine.stop()
  }
}

/// A store that refuses writes on request.
private final class RefusingStore: VaultStore {
  private let store: FileVaultStore
  private let refuses = Atomic<Bool>(false)

  init(_ store: FileVaultStore) { self.store = store }

  func refuseWrites(_ refuses: Bool) { self.refuses.store(refuses, ordering: .releasing) }

  func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    if refuses.load(ordering: .acquiring) { throw VaultError(.writeFailed, "no") }
    try store.write(bytes, for: id)
  }

  func ids() throws(VaultError) -> [VaultID] { try store.ids() }
  func read(_ id: VaultID) throws(VaultError) -> [UInt8]? { try store.read(id) }
  func remove(_ id: VaultID) throws(VaultError) { try store.remove(id) }
  func retire(_ id: VaultID) throws(VaultError) -> String { try store.retire(id) }
  func prepare() throws(VaultError) { try store.prepare() }
  func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock { try store.lock(id) }
  func location(of id: VaultID) -> String { store.location(of: id) }
  func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try store.lockAttempts(id)
  }
}
