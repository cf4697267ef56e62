import DataVault
import Foundation
import GRDB
import MessagingQueue
import SealedVFS
import SystemPackage
import TestSupport
import Testing
import VaultedDatabase

/// Complete homes that earlier versions stored: `Fixtures/homes/README.md`.
///
/// `DATAVAULT_MAKE_FIXTURES=1` makes those that are missing and changes no existing one.
struct HomeFixtureTests {
  private let place = EngineHome()
  private static let password = "correct horse battery staple"

  @Test(arguments: ["secured", "not-secured", "schema-2"])
  func `a home of version 1 or 2 of the tables starts with all its messages`(name: String)
    async throws
  {
    try copy(Self.folder.appendingPathComponent(name), to: place.folder)
    // The tables have an older schema until an engine has started on them.
    let older = try await MessagingEngine.verify(home, vault: vault(name))
    #expect(older.isClean)
    #expect(older.messages?.isOfOlderVersion == true)
    let engine = try await MessagingEngine.start(home, vault: vault(name))
    #expect(engine.isSecured == (name != "not-secured"))
    let orders = Channel.orders
    let history = try await engine.history(of: orders)
    #expect(history.map(\.text) == Self.texts)
    #expect(history.first?.headers == ["type": "order"])
    let dead = try await engine.deadLetters(of: orders, for: Consumer("audit"))
    #expect(dead.map(\.reason) == ["unreadable"])
    // Received messages are delivered again, as their leases have ended.
    let deliveries = try await engine.receive(from: orders, maximumCount: 100)
    #expect(deliveries.map(\.text) == ["urgent", "acknowledged by audit", "leased", "keyed 1"])
    try await engine.acknowledge(deliveries.map(\.token))
    let rest = try await engine.receive(from: orders, maximumCount: 100)
    #expect(rest.map(\.text) == ["keyed 2"])
    try await engine.stop()
    let verification = try await MessagingEngine.verify(home, vault: vault(name))
    #expect(verification.isClean)
  }

  @Test func `a home of version 3 starts with its limit`() async throws {
    try copy(Self.folder.appendingPathComponent("schema-3"), to: place.folder)
    let found = try await MessagingEngine.verify(home, vault: vault("schema-3"))
    #expect(found.isClean)
    let engine = try await MessagingEngine.start(home, vault: vault("schema-3"))
    #expect(try await engine.databaseSize().maximumByteCount == Self.limit)
    #expect(try await engine.history(of: .orders).map(\.text) == Self.texts)
    let refusal = await code {
      _ = try await engine.publish(Message(channel: .orders, payload: [1]))
    }
    #expect(refusal == .queueFull)
    try await engine.stop()
  }

  @Test
  func `start() refuses a home of version 1 while an engine of that version publishes in it`()
    async throws
  {
    try copy(Self.folder.appendingPathComponent("secured"), to: place.folder)
    let vault = try await vault("secured")
    let running = try await VaultedDatabase.open(home, vault: vault)
    try await running.pool.write(Self.publishByVersion1)
    var configuration = EngineConfiguration()
    configuration.busyTimeout = .zero
    let refusal = await code {
      _ = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    }
    #expect(refusal == .busy)
    // The refusal blocks neither that engine nor later connections.
    let later = try await VaultedDatabase.open(home, vault: vault)
    try await running.pool.write(Self.publishByVersion1)
    try await later.pool.write(Self.publishByVersion1)
    try running.close()
    try later.close()
    let engine = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    #expect(try await engine.history(of: .orders).count == Self.texts.count + 3)
    try await engine.stop()
    #expect(try await MessagingEngine.verify(home, vault: vault).isClean)
  }

  /// Publishes one message as an engine of version 1 did, which knows no count of published messages.
  @Sendable private static func publishByVersion1(_ db: Database) throws {
    try db.execute(
      sql: """
        UPDATE engine SET commit_number = commit_number + 1,
          timetoken_high_water = timetoken_high_water + 1;
        INSERT INTO message (timetoken, channel_id, priority, payload)
          SELECT timetoken_high_water, channel.id, 4, x'6F6C64' FROM engine, channel
          WHERE name = 'orders';
        UPDATE channel SET message_count = message_count + 1, byte_count = byte_count + 3
          WHERE name = 'orders';
        """)
  }

  @Test(arguments: [
    ("newer-schema", EngineError.Code.newerVersion), ("rolled-back", .rolledBack),
    ("foreign-database", .databaseMismatch), ("anchor-id-unknown", .rolledBack),
    ("anchor-commit-of-another", .rolledBack), ("commit-number-behind-the-anchor", .rolledBack),
  ])
  func `start() refuses a home with one fault and names the fault`(
    name: String, told: EngineError.Code
  ) async throws {
    try copy(Self.folder.appendingPathComponent(name), to: place.folder)
    #expect(await code { _ = try await MessagingEngine.start(home, vault: vault(name)) } == told)
  }

  // MARK: Opening them

  private var home: DataVaultHome { DataVaultHome(FilePath(place.folder.path)) }

  private func vault(_ name: String) async throws -> Vault {
    let vault = try await Vault.get(.messaging, in: home.store)
    try await vault.unlock(with: Self.credentials(isSecured: name != "not-secured"))
    return vault
  }

  private static var folder: URL {
    URL(fileURLWithPath: Repository.path("Fixtures/homes"))
  }

  private static func credentials(isSecured: Bool) -> Credentials {
    if isSecured { return TestSupport.credentials(password) }
    return .standard
  }

  /// Only the vault and the database, with a home's permissions.
  private func copy(_ source: URL, to target: URL) throws {
    for (name, mode) in [("", 0o700), ("vaults", 0o700)] {
      try FileManager.default.createDirectory(
        at: target.appendingPathComponent(name), withIntermediateDirectories: true,
        attributes: [.posixPermissions: mode])
    }
    for name in ["vaults/messaging.vault", "messaging.db"] {
      let copied = target.appendingPathComponent(name)
      try FileManager.default.copyItem(at: source.appendingPathComponent(name), to: copied)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copied.path)
    }
  }

  // MARK: Making them

  private static let texts = [
    "acknowledged by audit", "leased", "keyed 1", "keyed 2", "delayed for a hundred years",
    "urgent",
  ]

  @Test(
    .enabled(
      if: ProcessInfo.processInfo.environment["DATAVAULT_MAKE_FIXTURES"] != nil,
      "fixtures are made only on demand: DATAVAULT_MAKE_FIXTURES=1"))
  // Optimized, its closures end the compiler of Swift 6.3 with a signal.
  @_optimize(none)
  func `missing home fixtures are made`() async throws {
    try await make("secured") { engine in try await fill(engine) }
    try await make("not-secured", isSecured: false) { engine in try await fill(engine) }
    try await make("schema-2") { engine in try await fill(engine) }
    try await make("schema-3") { engine in
      try await fill(engine)
      try await engine.setMaximumDatabaseByteCount(Self.limit)
    }
    try await make("newer-schema") { engine in
      try await engine.write { try $0.execute(sql: "PRAGMA user_version = 1000") }
    }
    try await make("rolled-back", olderDatabase: true) { engine in try await fill(engine) }
    try await make("foreign-database") { _ in }
    let database = Self.folder.appendingPathComponent("foreign-database/messaging.db")
    let other = Self.folder.appendingPathComponent("secured/messaging.db")
    try Data(contentsOf: other).write(to: database)
  }

  /// Less than any database has.
  private static let limit = 4096

  private func fill(_ engine: MessagingEngine) async throws {
    let orders = Channel.orders
    let audit = try Consumer("audit")
    try await engine.addConsumer(audit, of: orders, maximumAttempts: 3)
    try await engine.addConsumer(.default, of: orders)
    var messages = Self.texts.map { Message(channel: orders, payload: Array($0.utf8)) }
    messages[0].headers = ["type": "order"]
    messages[0].deduplicationID = "order 1"
    messages[2].orderingKey = "customer 7"
    messages[3].orderingKey = "customer 7"
    messages[4].availability = .at(Date(timeIntervalSince1970: 4_950_000_000))
    messages[5].priority = try Priority(9)
    try await engine.publish(messages)
    let delivered = try await engine.receive(from: orders, for: audit, maximumCount: 3)
    try await engine.acknowledge([delivered[1].token])
    try await engine.reject([delivered[2].token], reason: "unreadable")
    _ = try await engine.receive(from: orders, maximumCount: 2, lease: .milliseconds(1))
  }

  private func make(
    _ name: String, isSecured: Bool = true, olderDatabase: Bool = false,
    _ fill: (MessagingEngine) async throws -> Void
  ) async throws {
    let target = Self.folder.appendingPathComponent(name)
    if FileManager.default.fileExists(atPath: target.path) { return }
    let made = EngineHome()
    let home = DataVaultHome(FilePath(made.folder.path))
    var parameters = VaultParameters()
    parameters.iterationCount = 220_000
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: Self.credentials(isSecured: isSecured),
      parameters: parameters)
    var older: Data?
    if olderDatabase {
      try await MessagingEngine.start(home, vault: vault).stop()
      older = try Data(contentsOf: made.database)
    }
    let engine = try await MessagingEngine.start(home, vault: vault)
    try await fill(engine)
    try await engine.stop()
    if let older { try older.write(to: made.database) }
    try copy(made.folder, to: target)
  }
}
