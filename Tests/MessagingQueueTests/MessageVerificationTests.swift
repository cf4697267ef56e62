import DataVault
import FileLayer
import FileRecording
import Foundation
import GRDB
import QueueFixture
import Testing
import VaultedDatabase

@testable import MessagingQueue

@Suite struct MessageVerificationTests {
  static let faults: [(rule: String, sql: String)] = [
    ("applicationID", "PRAGMA application_id = 7"),
    ("schemaVersion", "PRAGMA user_version = 7"),
    ("schema", "DROP INDEX message_priority"),
    ("engineRow", "DELETE FROM engine"),
    ("engineRow", "UPDATE engine SET anchors = x'00'"),
    ("engineRow", "UPDATE engine SET most_bytes = 0"),
    ("timetoken", "UPDATE engine SET timetoken_high_water = 16999999999999999"),
    ("headers", "UPDATE message SET headers = x'0001' WHERE priority = 4"),
    ("orderingKeyWithPriority", "UPDATE message SET priority = 5 WHERE ordering_key IS NOT NULL"),
    ("channelSums", "UPDATE channel SET message_count = message_count + 1"),
    ("channelSums", "UPDATE channel SET byte_count = byte_count - 1"),
    ("channelSums", "UPDATE channel SET published_count = message_count - 1"),
    ("messageChannel", "UPDATE message SET channel_id = 99 WHERE priority = 4"),
    ("deliveryConsumer", "UPDATE delivery SET consumer_id = 99"),
    ("deliveryMessage", "UPDATE delivery SET timetoken = timetoken - 1000"),
    ("deliveryAttempts", "UPDATE delivery SET attempt_count = -1"),
    ("deliveryOfMessage", "UPDATE delivery SET ordering_key = 'other'"),
    ("deliveryBeyondPosition", "DELETE FROM position"),
    ("deliveryLease", "UPDATE delivery SET lease = x'00' WHERE lease IS NOT NULL"),
    ("deliveryBoot", "UPDATE delivery SET held_boot = 9 WHERE held_boot IS NOT NULL"),
    ("deliveryBlocked", "DELETE FROM delivery WHERE is_blocked = 0"),
    ("dead_letterConsumer", "UPDATE dead_letter SET consumer_id = 99"),
    ("dead_letterMessage", "UPDATE dead_letter SET timetoken = timetoken - 1000"),
    (
      "deadLetterInHand",
      "INSERT INTO dead_letter SELECT consumer_id, timetoken, 1, 'x', 0, NULL FROM delivery LIMIT 1"
    ),
    ("positionConsumer", "UPDATE position SET consumer_id = 99"),
    ("position", "UPDATE position SET timetoken = 99999999999999999"),
    ("consumerChannel", "UPDATE consumer SET channel_id = 99"),
    ("consumerChannel", "UPDATE consumer SET most_attempts = 0"),
    ("deduplication", "UPDATE deduplication SET channel_id = 99"),
    ("channelSettings", "UPDATE channel SET removed_through = 99999999999999999"),
    ("name", "UPDATE channel SET name = ''"),
    ("failures", "UPDATE dead_letter SET failures = 'nonsense'"),
    ("engineRow", "UPDATE engine SET timetoken_high_water = 9223372036854775807"),
    ("engineRow", "UPDATE engine SET commit_number = 9223372036854775807"),
    ("engineRow", "UPDATE engine SET boot_number = 9223372036854775807"),
    ("channelSums", "UPDATE channel SET message_count = -9223372036854775808"),
    ("channelSums", "UPDATE channel SET published_count = 9223372036854775807"),
    ("channelSettings", "UPDATE channel SET longest_age = -9223372036854775808"),
    ("deliveryAttempts", "UPDATE delivery SET attempt_count = 9223372036854775807"),
    ("deliveryBoot", "UPDATE delivery SET held_boot = -1 WHERE held_boot IS NOT NULL"),
    ("position", "UPDATE position SET priority = 77 WHERE priority = 7"),
    ("name", "UPDATE channel SET name = char(27) || 'c'"),
    ("name", "UPDATE consumer SET name = char(10)"),
    ("schema", "CREATE TRIGGER t AFTER UPDATE ON engine BEGIN DELETE FROM message; END"),
  ]

  /// A channel with a row in each table.
  private static func engine() throws -> PlainEngine {
    let engine = try PlainEngine()
    let channel = try Channel("c")
    for index in 0..<6 {
      var message = Message(channel: channel, payload: [UInt8(index)], headers: ["n": "v"])
      if index > 2 { message.orderingKey = "key" }
      if index == 0 { message.priority = try Priority(7) }
      message.deduplicationID = "id \(index)"
      _ = try engine.database.publish([message])
    }
    let taken = try engine.database.receive(10, from: channel)
    try engine.database.reject([taken[0].token], reason: "no")
    return engine
  }

  @Test func `verification finds no fault in an engine's database`() throws {
    let engine = try Self.engine()
    #expect(try ExchangeFixture.faults(engine) == [])
    let verification = try engine.pool.read { db in try MessageVerifier.run(db) }
    #expect(verification.messageCount == 6)
  }

  @Test func `the count of deliveries stays at its greatest value`() throws {
    let engine = try Self.engine()
    try Self.apply("UPDATE delivery SET attempt_count = 999999999", to: engine)
    engine.time.advance(by: .seconds(3600))
    let again = try engine.database.receive(10, from: try Channel("c"))
    #expect(again.map(\.attempt).contains(999_999_999))
    #expect(try ExchangeFixture.faults(engine) == [])
  }

  @Test(arguments: faults.indices)
  func `verification names each broken rule`(index: Int) throws {
    let (rule, sql) = Self.faults[index]
    let engine = try Self.engine()
    try Self.apply(sql, to: engine)
    let found = try ExchangeFixture.faults(engine)
    #expect(found.contains { $0.rule == rule }, "\(found)")
  }

  /// What a salvage does not correct, as it loses rows or tables, or an opening refuses it.
  static let uncorrected = ["applicationID", "schemaVersion", "schema"]

  @Test(arguments: faults.indices.filter { !uncorrected.contains(faults[$0].rule) })
  func `a salvage leaves no broken rule`(index: Int) throws {
    let engine = try Self.engine()
    try Self.apply(Self.faults[index].sql, to: engine)
    _ = try MessageRepairer.run(engine.pool, lostDeliveries: false)
    #expect(try ExchangeFixture.faults(engine) == [], "\(Self.faults[index].sql)")
    let after = try Channel("after")
    try engine.database.publish(["one"], to: after)
    #expect(try engine.database.receive(10, from: after).count == 1)
  }

  @Test func `after a salvage messages still wait for their ordering key`() throws {
    let engine = try Self.engine()
    func waiting() throws -> [Int] {
      try engine.database.statistics().channels.flatMap { $0.consumers.map(\.blockedCount) }
    }
    #expect(try waiting() == [2])
    _ = try MessageRepairer.run(engine.pool, lostDeliveries: false)
    #expect(try waiting() == [2])
    // The one that they wait for is lost.
    try engine.pool.write { try $0.execute(sql: "DELETE FROM delivery WHERE lease IS NOT NULL") }
    _ = try MessageRepairer.run(engine.pool, lostDeliveries: false)
    #expect(try waiting() == [1])
  }

  @Test(arguments: [
    "UPDATE engine SET anchors = x'00'",
    "UPDATE engine SET timetoken_high_water = 9223372036854775807",
    "UPDATE engine SET commit_number = 9223372036854775807",
    "UPDATE delivery SET attempt_count = -1 WHERE lease IS NOT NULL",
    "UPDATE channel SET most_messages = -1", "UPDATE dead_letter SET failures = 'nonsense'",
    "UPDATE channel SET name = char(27) || 'c'",
    "INSERT INTO position SELECT consumer_id, 77, timetoken FROM position LIMIT 1",
  ])
  func `a salvage counts the values that it corrected, and is not complete`(sql: String) throws {
    let engine = try Self.engine()
    try Self.apply(sql, to: engine)
    let report = try MessageRepairer.run(engine.pool, lostDeliveries: false)
    #expect(report.correctedRowCount > 0 && !report.isComplete)
    #expect(try ExchangeFixture.faults(engine) == [])
  }

  @Test(
    arguments: [
      "UPDATE engine SET timetoken_high_water = $", "UPDATE engine SET commit_number = $",
      "UPDATE engine SET boot_number = $, boot_id = ''", "UPDATE channel SET message_count = $",
      "UPDATE channel SET byte_count = $", "UPDATE channel SET published_count = $",
      "UPDATE channel SET longest_age = $", "UPDATE channel SET removed_through = $",
      "UPDATE delivery SET attempt_count = $, held_boot = 0, held_until = 0, is_blocked = 0",
      "UPDATE delivery SET held_until = $ WHERE held_until IS NOT NULL",
      "UPDATE position SET timetoken = $", "UPDATE message SET due = $, expires = $",
      "UPDATE deduplication SET until = $, timetoken = $",
    ], [Int64.min, .max])
  func `a number that no engine writes is an error at most, and never ends the process`(
    sql: String, number: Int64
  ) async throws {
    let engine = try Self.engine()
    try engine.database.publish([Message(channel: try Channel("other"), payload: [1])])
    try Self.apply(sql.replacing("$", with: "(\(number))"), to: engine)
    try Self.work(on: engine)
    _ = try? await engine.pool.read { db in
      var exporter = try MessageExporter(
        db, MessageSelection(), from: ExportPlace(), progress: { _ in }, write: { _ in })
      return try exporter.run()
    }
    _ = try MessageRepairer.run(engine.pool, lostDeliveries: true)
    #expect(try ExchangeFixture.faults(engine) == [])
  }

  @Test(arguments: [-2, 1 << 53 - 1, 1 << 60] as [Int64])
  func `an anchor whose commit number the vault cannot store is refused, unchanged`(
    number: Int64
  ) throws {
    let engine = try Self.engine()
    try Self.apply("UPDATE engine SET commit_number = \(number)", to: engine)
    let error = #expect(throws: EngineError.self) {
      try engine.pool.writeWithoutTransaction { db in
        _ = try EngineAnchorStorage().add(
          [UInt8](repeating: 1, count: DatabaseAnchor.idByteCount), keeping: nil, in: db)
      }
    }
    #expect(error?.code == .damaged)
    let page = try engine.pool.read { db in try EngineAnchorStorage().page(in: db) }
    #expect(page == AnchorHistory(commitNumber: number, anchors: []))
  }

  /// Does what engines do, whatever comes of it.
  private static func work(on engine: PlainEngine) throws {
    let (channel, other) = (try Channel("c"), try Channel("other"))
    let tables = engine.database.engine.tables
    _ = try engine.pool.read { db in try MessageVerifier.run(db) }
    _ = try? engine.database.statistics()
    _ = try? engine.secondDatabase()
    _ = try? engine.database.receive(10, from: channel)
    _ = try? engine.pool.read { db in try EngineDatabase.channelSummaries(db) }
    _ = try? engine.pool.read { db in try EngineDatabase.publishedCounts([channel, other], db) }
    _ = try? engine.pool.write { db in
      try tables.sweep(channel, after: nil, count: 10, in: db)
    }
    _ = try? engine.database.publish(["one"], to: channel)
    _ = try? engine.pool.writeWithoutTransaction { db in
      try EngineAnchorStorage().add([UInt8](repeating: 1, count: 16), keeping: nil, in: db)
    }
  }

  private static func apply(_ sql: String, to engine: PlainEngine) throws {
    try engine.pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA ignore_check_constraints = ON")
      try db.execute(sql: sql)
      try db.execute(sql: "PRAGMA ignore_check_constraints = OFF")
    }
  }

  @Test func `opening refuses a database of another application`() throws {
    for (engine, id) in [(try Self.engine(), 7), (try PlainEngine(), 0)] {
      try Self.apply("PRAGMA application_id = \(id)", to: engine)
      #expect(code { _ = try engine.secondDatabase() } == .databaseMismatch, "\(id)")
    }
  }

  @Test func `a recovered channel gets an unused name`() throws {
    let engine = try PlainEngine()
    for name in ["recovered-3", "b", "lost"] {
      try engine.database.publish(["one"], to: try Channel(name))
    }
    try engine.pool.write { db in try db.execute(sql: "DELETE FROM channel WHERE name = 'lost'") }
    let repair = try MessageRepairer.run(engine.pool, lostDeliveries: false)
    #expect(repair.channels.map(\.channel) == ["b", "recovered-3", "recovered-3-again"])
    #expect(try ExchangeFixture.faults(engine) == [])
  }
}
