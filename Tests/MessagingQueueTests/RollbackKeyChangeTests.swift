import DataVault
import Foundation
import GRDB
import MessagingQueue
import SealedVFS
import SystemPackage
import Testing
import VaultCrypto
import VaultedDatabase

/// Every path that opens the messages for a change of key checks the anchor of the vault first.
@Suite struct RollbackKeyChangeTests {
  private let place = EngineHome()

  private var coordinator: DatabaseCoordinator { DatabaseCoordinator(home: place.home) }

  private func open(_ vault: Vault, _ anchorStorage: EngineAnchorStorage?) async throws {
    _ = try await coordinator.open(vault, anchorStorage: anchorStorage)
  }

  private func changeKey(of vault: Vault) async throws {
    try await coordinator.changeKey(of: vault, anchorStorage: EngineAnchorStorage())
  }

  private func secure() async throws {
    try await coordinator.secure(
      with: EngineHome.credentials, anchorStorage: EngineAnchorStorage())
  }

  private func publish(_ bytes: ClosedRange<UInt8>, through engine: MessagingEngine) async throws {
    try await engine.publish(
      bytes.map { Message(channel: .orders, payload: [UInt8](repeating: $0, count: 500)) })
    try await engine.stop()
  }

  /// Publishes, and puts the database back to what it was one publication ago.
  private func rollBack(_ start: () async throws -> MessagingEngine) async throws {
    try await publish(1...100, through: start())
    let older = try place.databaseFiles()
    try await publish(101...120, through: start())
    try place.replaceDatabase(older)
  }

  private func refusal(_ body: () async throws -> Void) async -> VaultedDatabaseError? {
    do {
      try await body()
      return nil
    } catch {
      return error as? VaultedDatabaseError
    }
  }

  private func expectNoChange(
    _ code: VaultedDatabaseError.Code, _ body: () async throws -> Void
  ) async throws {
    let before = (try files(), try place.vaultFile)
    let refusal = await refusal(body)
    #expect(refusal?.code == code, "\(String(describing: refusal))")
    #expect(try files() == before.0)
    #expect(try place.vaultFile == before.1)
  }

  private var journal: URL { place.folder.appendingPathComponent("messaging.db-journal") }

  private func files() throws -> [Data?] {
    [try place.databaseFiles()["messaging.db"], try? Data(contentsOf: journal)]
  }

  @Test func `a change of key refuses an older copy, and changes nothing`() async throws {
    let vault = try await place.makeVault()
    try await rollBack { try await place.start(vault) }
    try await expectNoChange(.rolledBack) { try await changeKey(of: vault) }
  }

  @Test func `securing refuses an older copy, and changes nothing`() async throws {
    try await rollBack { try await MessagingEngine.start(place.home) }
    try await expectNoChange(.rolledBack) { try await secure() }
  }

  /// A killed home whose log has a changed byte in its middle.
  private func damageLog(_ start: () async throws -> MessagingEngine) async throws {
    let engine = try await start()
    for byte in 1...20 as ClosedRange<UInt8> {
      try await engine.publish([Message(channel: .orders, payload: [byte])])
    }
    try await place.kill(engine)
    var bytes = try Data(contentsOf: place.log)
    bytes[32 + (bytes.count - 32) / 4120 / 2 * 4120 + 3000] ^= 1
    try bytes.write(to: place.log)
  }

  @Test func `a change of key and securing refuse a damaged log, and change nothing`() async throws
  {
    try await damageLog { try await MessagingEngine.start(place.home) }
    let before = try Data(contentsOf: place.log)
    let vault = try await Vault.get(
      .messaging, in: place.home.store, parameters: place.home.vaultParameters)
    try await vault.unlock(with: .standard)
    try await expectNoChange(.damaged) { try await changeKey(of: vault) }
    await vault.lock()
    try await expectNoChange(.damaged) { try await secure() }
    #expect(try Data(contentsOf: place.log) == before)
  }

  @Test func `a change of key that was interrupted does not go on with an older copy`() async throws
  {
    let vault = try await place.makeVault()
    try await rollBack { try await place.start(vault) }
    try await vault.storePendingKey(SecretBytes.random(byteCount: 32))
    try await expectNoChange(.rolledBack) { try await open(vault, EngineAnchorStorage()) }
  }

  /// A copy of the database as another program leaves it that is killed in a transaction, and the journal beside
  /// it, which brings back what there is now.
  private func killedTransaction(_ vault: Vault) async throws -> (database: Data, journal: Data) {
    let copy = place.folder.appendingPathComponent("copy.db")
    try #require(try place.databaseFiles()["messaging.db"]).write(to: copy)
    let keys = try await vault.databaseKeys()
    let registration = try SealedVFS.register(key: keys.current, at: FilePath(copy.path))
    let queue = try DatabaseQueue(path: copy.path)
    let killed = try await queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 5; BEGIN")
      try db.execute(
        sql: """
          PRAGMA user_version = 1; UPDATE engine SET commit_number = 0;
          UPDATE channel SET message_count = 0; UPDATE message SET payload = zeroblob(length(payload))
          """)
      let journal = try Data(contentsOf: URL(fileURLWithPath: copy.path + "-journal"))
      let database = try Data(contentsOf: copy)
      try db.execute(sql: "ROLLBACK")
      return (database, journal)
    }
    try queue.close()
    withExtendedLifetime(registration) {}
    return killed
  }

  /// A database of 120 messages, and beside it a journal of when it had 100.
  private func leaveHotJournal(_ vault: Vault) async throws {
    try await publish(1...100, through: place.start(vault))
    let old = try await killedTransaction(vault).journal
    try await publish(101...120, through: place.start(vault))
    try old.write(to: journal)
  }

  @Test func `a hot journal is refused as damage that names it, and nothing is rolled back`()
    async throws
  {
    let vault = try await place.makeVault()
    try await leaveHotJournal(vault)
    let keys = try await vault.databaseKeys()
    let found = try SealedVFS.verify(place.home.databasePath, key: keys.current)
    try #require(found.journal.state == .hot)
    let openings: [() async throws -> Void] = [
      { try await open(vault, EngineAnchorStorage()) },
      { try await changeKey(of: vault) },
      { try await VaultedDatabase.changeKey(of: place.home, vault: vault) },
    ]
    for opening in openings { try await expectNoChange(.damaged, opening) }
    let error = await engineError { _ = try await place.start(vault) }
    #expect(error?.code == .damaged)
    #expect(error?.message.contains("messaging.db-journal") == true)
    #expect(error?.hint?.contains("queue verify") == true)
    #expect(error?.hint?.contains("queue salvage") == true)
    try FileManager.default.removeItem(at: journal)
    #expect(try await place.verify(vault).isClean)
    #expect(try await place.messageCount(vault) == 120)
  }

  @Test func `a salvage rolls back what another program has left, and loses no message`()
    async throws
  {
    let vault = try await place.makeVault()
    try await publish(1...100, through: place.start(vault))
    let killed = try await killedTransaction(vault)
    try place.replaceDatabase(["messaging.db": killed.database])
    try killed.journal.write(to: journal)
    #expect(await code { _ = try await place.start(vault) } == .damaged)
    #expect(try await place.salvage(vault).isComplete)
    let engine = try await place.start(vault)
    let payloads = try await engine.history(of: .orders, maximumCount: 200).map(\.payload)
    #expect(payloads == (1...100).map { [UInt8](repeating: $0, count: 500) })
    try await engine.stop()
  }

  @Test func `a change of key that was interrupted does not roll a hot journal back`() async throws
  {
    let vault = try await place.makeVault()
    try await leaveHotJournal(vault)
    try await vault.storePendingKey(SecretBytes.random(byteCount: 32))
    for anchorStorage in [EngineAnchorStorage(), nil] {
      try await expectNoChange(.damaged) { try await open(vault, anchorStorage) }
    }
  }
}
