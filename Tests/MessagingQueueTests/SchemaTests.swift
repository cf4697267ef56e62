import FileLayer
import Foundation
import GRDB
import MessagingQueue
import Testing

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

  @Test func `a database of a newer version is refused and left alone`() throws {
    _ = try engine.number("PRAGMA user_version = 999")
    #expect(code { _ = try engine.secondDatabase() } == .newerVersion)
    #expect(try engine.number("PRAGMA user_version") == 999)
  }

  @Test func `a schema version below zero is damage, not a crash`() throws {
    _ = try engine.number("PRAGMA user_version = -1")
    #expect(code { _ = try engine.secondDatabase() } == .damaged)
  }

  @Test func `engines that start together on a new file make the tables once`() async throws {
    let path = engine.folder.appendingPathComponent("new.db").path
    let time = engine.time
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          var configuration = Configuration()
          configuration.busyMode = .timeout(5)
          _ = try EngineDatabase(
            pool: DatabasePool(path: path, configuration: configuration), time: time)
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `receiving searches an index for what is ready and for what is over`() throws {
    let plans = try engine.pool.read { db in
      try [EngineDatabase.selectOver, EngineDatabase.selectReady].map { sql in
        try Row.fetchAll(
          db, sql: "EXPLAIN QUERY PLAN " + sql,
          arguments: sql == EngineDatabase.selectOver ? [1, 1, 1, 1] : [1, 1]
        )
        .map { $0["detail"] as String }
      }
    }
    #expect(
      plans[0][0].contains("USING INDEX delivery_held (channel_id=? AND (held_boot,held_until)<"))
    #expect(plans[1][0].contains("USING INDEX delivery_ready (channel_id=?)"))
    #expect(!plans.joined().contains { $0.contains("TEMP B-TREE") })
  }
}
