import Foundation
import GRDB
import QueueFixture
import Testing

@testable import MessagingQueue

@Suite struct SchemaTests {
  let engine: PlainEngine

  init() throws {
    engine = try PlainEngine()
  }

  @Test func `the file can shrink: auto_vacuum is incremental`() throws {
    #expect(try engine.number("PRAGMA auto_vacuum") == 2)
  }

  @Test func `a commit is a sync: the writer runs with synchronous FULL`() throws {
    #expect(try engine.number("PRAGMA synchronous") == 2)
  }

  @Test func `starting again changes nothing`() throws {
    let commitNumber = try engine.database.statistics().commitNumber
    let second = try engine.secondDatabase()
    #expect(try second.statistics().commitNumber == commitNumber)
  }

  @Test func `a database of a newer version is refused and unchanged`() throws {
    _ = try engine.number("PRAGMA user_version = 999")
    #expect(code { _ = try engine.secondDatabase() } == .newerVersion)
    #expect(try engine.number("PRAGMA user_version") == 999)
  }

  @Test func `verification calls a newer schema newer, and promises no start of an engine`() throws
  {
    _ = try engine.number("PRAGMA user_version = 999")
    let fault = try #require(try engine.pool.read { try MessageVerifier.run($0).faults.first })
    #expect(fault.rule == "schemaVersion")
    #expect(fault.locations.first?.contains("newer version") == true)
    #expect(fault.locations.first?.contains("start of an engine") == false)
  }

  @Test func `verification finds no fault in a database that has no tables of the engine yet`()
    throws
  {
    let new = try DatabaseQueue()
    #expect(try new.read { try MessageVerifier.run($0) } == MessageVerification())
  }

  @Test func `a schema version below zero is damage, not a crash`() throws {
    _ = try engine.number("PRAGMA user_version = -1")
    #expect(code { _ = try engine.secondDatabase() } == .damaged)
  }

  @Test(arguments: [2, 1, 0])
  func `a database of an older version migrates to the current schema and continues counting`(
    version: Int
  ) throws {
    let channel = try Channel("c")
    try engine.database.publish(["a", "b"], to: channel)
    let entries = try entries(engine.pool)
    try takeBackTo(version)
    let verification = try engine.pool.read { try MessageVerifier.run($0) }
    #expect(verification.faults.map(\.rule) == (version == 0 ? ["schemaVersion"] : []))
    #expect(verification.isOfOlderVersion == (version > 0))
    // As after a salvage that found the tables, but not their version.
    if version == 0 { _ = try MessageRepairer.run(engine.pool, lostDeliveries: false) }
    try engine.pool.close()
    let pool = try DatabasePool(path: engine.pool.path)
    try EngineSchema.migrateAlone(pool)
    let database = try TestQueue(pool: pool, time: engine.time)
    #expect(try self.entries(pool) == entries)
    try database.acknowledge(database.receive(1, from: channel).map(\.token))
    try database.publish(["c"], to: channel)
    #expect(try pool.read { try Int.fetchOne($0, sql: "SELECT published_count FROM channel") } == 3)
    #expect(try pool.read { try MessageVerifier.run($0).isClean })
  }

  @Test func `a repair brings tables of different versions up to date, and makes a missing one`()
    throws
  {
    let entries = try entries(engine.pool)
    try takeBackTo(1)
    _ = try engine.number("DROP TABLE engine")
    #expect(try MessageRepairer.run(engine.pool, lostDeliveries: false).rebuiltTables == ["engine"])
    #expect(try self.entries(engine.pool) == entries)
    _ = try engine.number("ALTER TABLE channel DROP COLUMN published_count")
    _ = try MessageRepairer.run(engine.pool, lostDeliveries: false)
    #expect(try self.entries(engine.pool) == entries)
    #expect(try engine.pool.read { try MessageVerifier.run($0).isClean })
  }

  @Test func `a database is not migrated while an engine of an older version has it open`() throws {
    try takeBackTo(1)
    let other = try DatabasePool(path: engine.pool.path)
    #expect(code { try EngineSchema.migrateAlone(other) } == .busy)
    #expect(try engine.number("PRAGMA user_version") == 1)
    // The engine goes on.
    try engine.pool.write { try $0.execute(sql: "UPDATE engine SET commit_number = 7") }
    try engine.pool.close()
    try EngineSchema.migrateAlone(other)
    #expect(try other.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 3)
    // The lock is given back.
    let third = try DatabasePool(path: other.path)
    try third.write { try $0.execute(sql: "UPDATE engine SET boot_number = boot_number") }
    try other.write { try $0.execute(sql: "UPDATE engine SET boot_number = boot_number") }
  }

  @Test func `no engine runs on tables that an older version makes while it starts`() throws {
    try takeBackTo(1)
    // It looked for tables to migrate before the engine of version 1 made them.
    let late = try DatabasePool(path: engine.pool.path)
    #expect(code { _ = try TestQueue(pool: late, time: engine.time) } == .busy)
    #expect(try late.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 1)
  }

  private func takeBackTo(_ version: Int) throws {
    _ = try engine.number("ALTER TABLE engine DROP COLUMN most_bytes")
    if version < 2 { _ = try engine.number("ALTER TABLE channel DROP COLUMN published_count") }
    _ = try engine.number("PRAGMA user_version = \(version)")
  }

  private func entries(_ pool: DatabasePool) throws -> [String] {
    try pool.read { db in
      try String.fetchAll(
        db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    }
  }

  @Test func `engines that start together on a new file make the tables once`() async throws {
    let path = engine.folder.appendingPathComponent("new.db").path
    let time = engine.time
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          var configuration = Configuration()
          configuration.busyMode = .timeout(5)
          _ = try MessagingEngine(
            pool: DatabasePool(path: path, configuration: configuration), time: time,
            isSecured: false)
        }
      }
      try await group.waitForAll()
    }
  }

  @Test(arguments: [
    (EngineDatabase.endHolds, 3, "delivery_held (consumer_id=? AND (held_boot,held_until)<"),
    (
      EngineDatabase.selectReady, 4, "delivery_ready (consumer_id=? AND priority=? AND timetoken>?)"
    ),
    (EngineDatabase.selectNew(.normal), 2, "message_channel (channel_id=? AND rowid>?)"),
    (
      EngineDatabase.selectNew(Priority(stored: 9)), 2,
      "message_priority (channel_id=? AND priority=? AND rowid>?)"
    ),
  ])
  func `receiving searches an index and sorts nothing`(
    sql: String, argumentCount: Int, index: String
  ) throws {
    let plan = try engine.pool.read { db in
      try Row.fetchAll(
        db, sql: "EXPLAIN QUERY PLAN " + sql,
        arguments: StatementArguments(Array(repeating: 1, count: argumentCount))
      ).map { $0["detail"] as String }
    }
    #expect(plan[0].contains(index), "\(plan)")
    #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(plan)")
  }
}
