import GRDB
import MessagingQueue
import SealedVFS
import Testing
import VaultedDatabase

/// Salvages of a home whose database has lost pages of its schema.
@Suite struct LostSchemaTests {
  private let place = EngineHome()

  /// Publishes messages and has two consumers acknowledge, reject, release and hold some of them.
  private func fill() async throws {
    let engine = try await place.start(try await place.makeVault())
    try await engine.publish(
      try (0..<200).map { index in
        var message = Message(
          channel: .orders, payload: Array("\(index) ".utf8) + [UInt8](repeating: 7, count: 500),
          headers: ["number": "\(index)"])
        message.deduplicationID = "id \(index)"
        if index % 4 == 1 { message.orderingKey = "key \(index % 3)" }
        if index % 10 == 0 { message.priority = try Priority(7) }
        return message
      })
    for consumer in [Consumer.default, try Consumer("second")] {
      let taken = try await engine.receive(
        from: .orders, for: consumer, maximumCount: 20, lease: .seconds(30)
      ).map(\.token)
      try await engine.acknowledge(Array(taken[..<5]))
      try await engine.reject(Array(taken[5..<7]), reason: "bad")
      try await engine.release(Array(taken[7..<10]), after: .zero)
      try await engine.release(Array(taken[10..<13]), after: .seconds(60))
    }
    try await engine.stop()
  }

  private static let tables = [
    "message": "*", "channel": "*", "consumer": "*", "position": "*", "dead_letter": "*",
    "deduplication": "*", "identity": "*",
    "delivery": "consumer_id, timetoken, priority, ordering_key, lease, held_until, failures",
  ]

  private func rows() async throws -> [String: Set<String>] {
    let database = try await VaultedDatabase.open(
      place.home, vault: try await place.unlockedVault())
    let rows = try await database.pool.read { db in
      try Self.tables.reduce(into: [String: Set<String>]()) { rows, table in
        rows[table.key] = Set(
          try Row.fetchAll(db, sql: "SELECT \(table.value) FROM \(table.key)").map { "\($0)" })
      }
    }
    try database.close()
    return rows
  }

  @Test func `salvage() finds the engine's rows without any one page of the schema`() async throws {
    try await fill()
    let pages = try await place.pages(of: "sqlite_schema", place.unlockedVault())
    #expect(pages.count > 1)
    let before = try await rows()
    let whole = try place.image
    for page in pages {
      try place.restore(whole)
      try place.damage([page])
      let vault = try await place.unlockedVault()
      let salvage = try await place.salvage(vault)
      #expect(salvage.pages?.isSchemaWhole == false && !salvage.isComplete)
      let after = try await rows()
      for (table, rows) in before {
        #expect(
          after[table] == rows,
          "\(page): \(table) \(rows.count) \(after[table]?.count ?? 0) \(salvage)")
      }
      #expect(try await place.verify(vault).isClean)
      let engine = try await place.start(vault)
      #expect(try await engine.publish(Message(channel: .orders, payload: [1])).rawValue > 0)
      try await engine.stop()
    }
  }

  @Test func `salvage() keeps the database if it cannot tell which rows are messages`() async throws
  {
    try await fill()
    let root = try await place.withEngine(place.unlockedVault()) { engine in
      try await engine.read { db in
        try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'message'")
      }
    }
    // With page 1 the list of free pages is lost, with page 2 the pointer map.
    try place.damage([1, 2, try #require(root)])
    let before = try place.databaseFiles()
    let vault = try await place.unlockedVault()
    #expect(await code { _ = try await place.salvage(vault) } == .damaged)
    #expect(try place.databaseFiles() == before)
  }
}
