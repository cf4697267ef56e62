import DataVault
import Foundation
import MessagingQueue
import Testing

/// The files that an engine leaves when it stops.
@Suite struct EngineClosingTests {
  private let place = EngineHome()

  /// A vault and a hundred messages.
  private func filled() async throws -> Vault {
    let vault = try await place.makeVault()
    try await place.publish(1...100, vault)
    return vault
  }

  /// The database and the files that SQLite keeps beside it.
  private var names: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: place.folder.path)
        .filter { ["db", "db-wal", "db-shm", "db-journal"].map { "messaging." + $0 }.contains($0) }
        .sorted()
    }
  }

  /// Reads in every way that an engine has, several at a time.
  private func read(_ engine: MessagingEngine) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask { _ = try await engine.history(of: .orders, maximumCount: 10) }
        group.addTask { _ = try await engine.channels() }
        group.addTask { _ = try await engine.statistics() }
      }
      try await group.waitForAll()
    }
  }

  @Test func `the last engine to stop leaves one file, whatever has read it`() async throws {
    let vault = try await filled()
    #expect(try names == ["messaging.db"])
    for _ in 0..<20 {
      try await place.withEngine(vault) { try await read($0) }
      #expect(try names == ["messaging.db"])
    }
    // A copy of that file and of the vault proves it: no message is kept elsewhere.
    let other = EngineHome()
    _ = try await other.makeVault()
    try other.restore(place.image)
    #expect(try await other.messageCount(other.unlockedVault()) == 100)
  }

  @Test func `an engine that stops before another keeps the log`() async throws {
    let vault = try await filled()
    let first = try await place.start(vault)
    let second = try await place.start(vault)
    try await first.publish(Message(channel: .orders, payload: [1]))
    try await read(first)
    try await read(second)
    try await first.stop()
    #expect(try names == ["messaging.db", "messaging.db-shm", "messaging.db-wal"])
    #expect(try await second.messageCount(of: .orders) == 101)
    try await second.stop()
    #expect(try names == ["messaging.db"])
  }

  @Test func `an engine whose reads found damage keeps the log`() async throws {
    let vault = try await filled()
    let page = try #require(try await place.pages(of: "message", vault).dropFirst(3).first)
    try place.damage([page])
    let files = try place.databaseFiles()

    let damaged = try await place.start(vault)
    #expect(await code { _ = try await damaged.history(of: .orders) } == .damaged)
    try await damaged.stop()
    #expect(try names.contains("messaging.db-wal"))
    #expect(try place.databaseFiles()["messaging.db"] == files["messaging.db"])
  }

  @Test func `reading a database leaves no file beside it and changes no log`()
    async throws
  {
    let vault = try await filled()
    let engine = try await place.start(vault)
    let older = try place.databaseFiles().filter { $0.key == "messaging.db" }
    try await engine.publish(Message(channel: .orders, payload: [1]))
    let killed = try place.databaseFiles()
    #expect(killed["messaging.db-wal"]?.isEmpty == false)
    try await engine.stop()
    #expect(try await place.verify(vault).isClean)
    _ = await QueueDoctor.examineDatabase(of: place.home, vault: vault)
    #expect(try names == ["messaging.db"])
    try place.replaceDatabase(older)
    #expect(await code { try await place.start(vault).stop() } == .rolledBack)
    _ = try await place.verify(vault)
    #expect(try names == ["messaging.db"])
    #expect(try place.databaseFiles() == older)
    // With a log, as after a kill.
    try place.replaceDatabase(killed)
    _ = try await place.verify(vault)
    _ = await QueueDoctor.examineDatabase(of: place.home, vault: vault)
    #expect(try place.databaseFiles() == killed)
  }
}
