import DataVault
import Foundation
import GRDB
import MessagingQueue
import SealedVFS
import SystemPackage
import Testing
import VaultedDatabase

@Suite struct QueueSalvageTests {
  let place = EngineHome()
  let channel = Channel.orders

  /// Messages over many pages, some of them acknowledged, others leased.
  private func filledVault() async throws -> Vault {
    let engine = try await place.start(try await place.makeVault())
    for start in stride(from: 0, to: 200, by: 50) {
      try await engine.publish(
        (start..<start + 50).map { index in
          Message(
            channel: channel, payload: Array("\(index) ".utf8) + [UInt8](repeating: 7, count: 500),
            headers: ["number": "\(index)"])
        })
    }
    let taken = try await engine.receive(from: channel, maximumCount: 20, lease: .seconds(30))
    try await engine.acknowledge(taken[..<10].map(\.token))
    try await engine.stop()
    return try await place.unlockedVault()
  }

  /// The databases in the home, without their logs.
  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: place.folder.path)
      .filter { $0.hasPrefix("messaging.db") && !$0.contains("-notify") && !$0.contains("-maint") }
      .filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }.sorted()
  }

  @Test func `verify() finds no fault in an intact home, and names damage`() async throws {
    let vault = try await filledVault()
    let whole = try await place.verify(vault)
    #expect(whole.isClean)
    #expect(whole.messages?.messageCount == 190)
    try place.damage([9])
    let damaged = try await place.verify(vault)
    #expect(!damaged.isClean)
    #expect(damaged.pages.damagedPages == [9])
    #expect(damaged.messages == nil)
  }

  @Test func `after salvage() the engine has the intact messages, and the damaged file is kept`()
    async throws
  {
    let vault = try await filledVault()
    let leaf = try #require(try await place.pages(of: "message", vault).dropFirst(5).first)
    try place.damage([leaf])
    let before = try Data(contentsOf: place.database)
    let salvage = try await place.salvage(vault)
    #expect(!salvage.isComplete)
    let lost = try #require(salvage.messages?.channels.first?.lostMessageCount)
    #expect(lost > 0)
    #expect(lost < 20)
    #expect(try Data(contentsOf: URL(fileURLWithPath: salvage.damagedPath.string)) == before)
    #expect(try names() == ["messaging.db", "messaging.db.damaged-1"])
    #expect(try await place.verify(vault).isClean)

    let engine = try await place.start(vault)
    #expect(try await engine.messageCount(of: channel) == 190 - lost)
    // Ten are leased and come when their leases end; all others come now.
    let rest = try await engine.receive(from: channel, maximumCount: 1000, lease: .seconds(30))
    #expect(rest.count >= 190 - lost - 10)
    #expect(rest.allSatisfy { $0.headers.count == 1 })
    try await engine.publish(Message(channel: channel, payload: [1]))
    try await engine.stop()
    try await place.start(try await place.unlockedVault()).stop()
  }

  @Test func `salvage() of an intact database loses nothing`() async throws {
    let vault = try await filledVault()
    let salvage = try await place.salvage(vault)
    #expect(salvage.isComplete)
    #expect(try await place.messageCount(vault) == 190)
  }

  @Test(arguments: ["channel", "consumer", "position", "delivery", "engine", "identity"])
  func `salvage() rebuilds a lost table of the engine without losing a message`(
    table: String
  ) async throws {
    let vault = try await filledVault()
    try place.damage(try await place.pages(of: table, vault))
    let salvage = try await place.salvage(vault)
    #expect(!salvage.isComplete)
    #expect(try await place.verify(vault).isClean)
    let engine = try await place.start(vault)
    let channels = try await engine.channels()
    #expect(channels.map(\.messageCount) == [190])
    // Every message that was not acknowledged is delivered.
    try await engine.stop()
    let after = try await place.start(vault)
    var count = 0
    while true {
      let page = try await after.receive(
        from: channels[0].channel, maximumCount: 100, lease: .seconds(0.001))
      if page.isEmpty { break }
      count += page.count
      try await after.acknowledge(page.map(\.token))
    }
    #expect(count >= 180)
    try await after.stop()
  }

  @Test func `salvage() delivers the messages of lost dead letters again`() async throws {
    let engine = try await place.start(try await place.makeVault())
    for number in 1...5 {
      try await engine.publish(Message(channel: channel, payload: [UInt8(number)]))
    }
    let taken = try await engine.receive(from: channel, maximumCount: 5, lease: .seconds(30))
    try await engine.reject(taken.map(\.token), reason: "bad")
    try await engine.stop()
    let vault = try await place.unlockedVault()
    try place.damage(try await place.pages(of: "dead_letter", vault))
    #expect(try await place.salvage(vault).messages?.redeliveredCount == 5)
    let after = try await place.start(vault)
    let again = try await after.receive(from: channel, maximumCount: 10, lease: .seconds(30))
    #expect(again.map(\.payload) == taken.map(\.payload))
    try await after.stop()
  }

  @Test(arguments: [0, 5, 100, 2000])
  func `salvage() loses no message to a damaged first page`(offset: Int) async throws {
    let vault = try await filledVault()
    var bytes = try Data(contentsOf: place.database)
    bytes[offset] ^= 1
    try bytes.write(to: place.database)
    #expect(try await !place.verify(vault).isClean)
    let salvage = try await place.salvage(vault)
    #expect(salvage.messages?.channels.map(\.messageCount) == [190])
    #expect(try await place.verify(vault).isClean)
    #expect(try await place.messageCount(vault) == 190)
  }

  /// Renames the files of the home as a salvage leaves them that is killed after the vault names
  /// the new database.
  private func interruptSalvage(damagedIsRenamed: Bool) throws {
    let database = place.database.path
    try FileManager.default.moveItem(atPath: database, toPath: database + ".salvaged")
    if damagedIsRenamed { return }
    try FileManager.default.moveItem(atPath: database + ".damaged-2", toPath: database)
  }

  @Test(arguments: [false, true])
  func `the next opening finishes a salvage that was killed before the renames, and says so`(
    damagedIsRenamed: Bool
  ) async throws {
    let vault = try await filledVault()
    for _ in 1...2 { _ = try await place.salvage(vault) }
    let damaged = place.database.path + ".damaged-"
    if damagedIsRenamed { try FileManager.default.removeItem(atPath: damaged + "1") }

    try interruptSalvage(damagedIsRenamed: damagedIsRenamed)
    #expect(try await VaultedDatabase.cleanUpFirstRun(place.home) == nil)
    #expect(try await place.verify(vault).finishedSalvage?.string == damaged + "2")
    try interruptSalvage(damagedIsRenamed: damagedIsRenamed)
    let salvage = try await place.salvage(vault)
    #expect(salvage.pages == nil && !salvage.isComplete)
    #expect(salvage.damagedPath.string == damaged + "2")
    try interruptSalvage(damagedIsRenamed: damagedIsRenamed)
    let opened = try await VaultedDatabase.open(place.home, vault: vault)
    #expect(opened.finishedSalvage?.string == damaged + "2")
    try opened.close()
    #expect(try names().last == "messaging.db.damaged-2")
    #expect(try await place.messageCount(vault) == 190)
  }

  @Test func `a salvage replaces no log that an earlier one has left`() async throws {
    let vault = try await filledVault()
    let engine = try await place.start(vault)
    try await engine.publish(Message(channel: channel, payload: [1]))
    let files = try [place.database, place.log].map { ($0, try Data(contentsOf: $0)) }
    try await engine.stop()
    for (url, bytes) in files { try bytes.write(to: url) }
    let earlier = place.folder.appendingPathComponent("messaging.db.damaged-1-wal")
    try Data([1, 2, 3]).write(to: earlier)
    let salvage = try await place.salvage(try await place.unlockedVault(), acceptsRollback: true)
    #expect(salvage.damagedPath.string == place.database.path + ".damaged-2")
    #expect(try Data(contentsOf: earlier) == Data([1, 2, 3]))
    #expect(FileManager.default.fileExists(atPath: salvage.damagedPath.string + "-wal"))
  }

  @Test(arguments: [false, true])
  func `a copy under the name of a salvaged database does not take the place of a database`(
    headerIsDamaged: Bool
  ) async throws {
    let vault = try await filledVault()
    try FileManager.default.copyItem(
      atPath: place.database.path, toPath: place.database.path + ".salvaged")
    var bytes = try Data(contentsOf: place.database)
    if headerIsDamaged { bytes[9] ^= 1 }
    try bytes.write(to: place.database)
    #expect(try await place.verify(vault).isClean == !headerIsDamaged)
    #expect(try names() == ["messaging.db", "messaging.db.salvaged"])
    #expect(try Data(contentsOf: place.database) == bytes)
    #expect(try await place.salvage(vault).isComplete)
    #expect(try await place.messageCount(vault) == 190)
  }

  @Test func `the database from before a salvage is salvaged again if the new one is lost`()
    async throws
  {
    let vault = try await filledVault()
    _ = try await place.salvage(vault)
    let damaged = place.folder.appendingPathComponent("messaging.db.damaged-1")
    try FileManager.default.removeItem(at: place.database)
    try FileManager.default.moveItem(at: damaged, to: place.database)
    let refusal = await #expect(throws: EngineError.self) { try await place.start(vault) }
    #expect(refusal?.code == .databaseMismatch)
    #expect(refusal?.hint?.contains("queue salvage") == true)
    let again = try await place.salvage(vault)
    #expect(again.messages?.channels.map(\.messageCount) == [190])
    #expect(try await place.messageCount(vault) == 190)
  }

  @Test func `a database from before a change of key is damaged for every command`() async throws {
    let vault = try await filledVault()
    let before = try Data(contentsOf: place.database)
    try await VaultedDatabase.changeKey(of: place.home, vault: vault)
    try before.write(to: place.database)
    let commands: [@Sendable (DataVaultHome) async throws -> Void] = [
      { _ = try await MessagingEngine.start($0, vault: vault) },
      { _ = try await MessagingEngine.verify($0, vault: vault) },
      { _ = try await MessagingEngine.salvage($0, vault: vault) },
      { try await VaultedDatabase.changeKey(of: $0, vault: vault) },
    ]
    for command in commands {
      await #expect {
        try await command(place.home)
      } throws: { "\($0)".contains("no key of the vault opens") }
    }
    #expect(try Data(contentsOf: place.database) == before)
  }

  @Test func `a salvage that was killed before the vault's write keeps the damaged database`()
    async throws
  {
    let vault = try await filledVault()
    try Data([1, 2, 3]).write(to: place.folder.appendingPathComponent("messaging.db.salvaged"))
    #expect(try await place.messageCount(vault) == 190)
    #expect(try await place.salvage(vault).isComplete)
  }

  /// Runs statements on the messages, as a program that has the key.
  private func run(_ sql: String, _ vault: Vault) async throws {
    let opened = try await VaultedDatabase.open(place.home, vault: vault)
    try await opened.pool.write { db in try db.execute(sql: sql) }
    try opened.close()
  }

  @Test func `a salvage keeps the limit of the database`() async throws {
    let vault = try await filledVault()
    try await run("UPDATE engine SET most_bytes = 7777777", vault)
    _ = try await place.salvage(vault)
    let engine = try await place.start(vault)
    #expect(try await engine.databaseSize().maximumByteCount == 7_777_777)
    try await engine.stop()
  }

  @Test func `a database of a newer schema is not salvaged, and nothing is changed`() async throws {
    let vault = try await filledVault()
    try await run("PRAGMA user_version = 999", vault)
    let before = try Data(contentsOf: place.database)
    #expect(await code { _ = try await place.salvage(vault) } == .newerVersion)
    let (names, after) = (try names(), try Data(contentsOf: place.database))
    #expect(names == ["messaging.db"] && after == before)
  }

  @Test func `a trigger on a table of the engine is named, and does not run in a salvage`()
    async throws
  {
    let vault = try await filledVault()
    try await run(
      """
      CREATE TRIGGER "a ""b" AFTER UPDATE ON engine BEGIN DELETE FROM message; END;
      CREATE TABLE invoice (number); CREATE TABLE line (number);
      CREATE TRIGGER own AFTER INSERT ON invoice BEGIN INSERT INTO line VALUES (1); END;
      """, vault)
    let found = try await place.verify(vault)
    #expect(
      found.messages?.faults.map(\.locations) == [
        [#"the trigger a "b on a table of the engine is not the engine's"#]
      ])
    let salvage = try await place.salvage(vault)
    #expect(salvage.messages?.removedTriggers == [#"a "b"#] && !salvage.isComplete)
    #expect(salvage.messages?.channels.map(\.messageCount) == [190])
    #expect(try await place.verify(vault).isClean)
    // The application's own trigger stays.
    let opened = try await VaultedDatabase.open(place.home, vault: vault)
    let triggers = try await opened.pool.read { db in
      try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    }
    #expect(triggers == ["own"])
    try opened.close()
  }

  @Test func `verify() and salvage() throw busy while an engine runs`() async throws {
    let vault = try await filledVault()
    let engine = try await place.start(vault)
    #expect(await code { _ = try await place.verify(vault) } == .busy)
    #expect(await code { _ = try await place.salvage(vault) } == .busy)
    try await engine.stop()
  }
}
