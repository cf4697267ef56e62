import FileLayer
import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import Testing

@Suite struct MessageVerificationTests {
  static let faults: [(rule: String, sql: String)] = [
    ("applicationID", "PRAGMA application_id = 7"),
    ("schemaVersion", "PRAGMA user_version = 7"),
    ("schema", "DROP INDEX message_priority"),
    ("engineRow", "DELETE FROM engine"),
    ("engineRow", "UPDATE engine SET anchors = x'00'"),
    ("timetoken", "UPDATE engine SET timetoken_high_water = 16999999999999999"),
    ("headers", "UPDATE message SET headers = x'0001' WHERE priority = 4"),
    ("orderingKeyWithPriority", "UPDATE message SET priority = 5 WHERE ordering_key IS NOT NULL"),
    ("channelSums", "UPDATE channel SET message_count = message_count + 1"),
    ("channelSums", "UPDATE channel SET byte_count = byte_count - 1"),
    ("channelSums", "UPDATE channel SET published_count = message_count - 1"),
    ("messageChannel", "UPDATE message SET channel_id = 99 WHERE priority = 4"),
    ("deliveryConsumer", "UPDATE delivery SET consumer_id = 99"),
    (
      "deliveryMessage", "UPDATE delivery SET timetoken = timetoken - 1000"
    ),
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

  @Test(arguments: faults.indices)
  func `verification names each broken rule`(index: Int) throws {
    let (rule, sql) = Self.faults[index]
    let engine = try Self.engine()
    try engine.pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA ignore_check_constraints = ON")
      try db.execute(sql: sql)
    }
    let found = try ExchangeFixture.faults(engine)
    #expect(found.contains { $0.rule == rule }, "\(found)")
  }

  @Test func `opening refuses a database of another application`() throws {
    let engine = try Self.engine()
    try engine.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA application_id = 7") }
    #expect(code { _ = try engine.secondDatabase() } == .databaseMismatch)
    let other = try PlainEngine()
    try other.pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA application_id = 0")
    }
    #expect(code { _ = try other.secondDatabase() } == .databaseMismatch)
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
