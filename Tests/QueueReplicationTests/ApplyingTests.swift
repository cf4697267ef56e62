import GRDB
import MessagingQueue
import ReplicationFixture
import TestSupport
import Testing

/// What a home does with records, whatever its clock says.
@Suite struct ApplyingTests {
  private static let hour: Int64 = 36_000_000_000
  private static let start: Int64 = 19_000_000_000_000_000

  /// The tables of a member's home.
  private func withTables(
    _ body: @escaping @Sendable (EngineDatabase, Database) throws -> Void
  ) async throws {
    let node = try await TestNode(TestShard(), member: 1)
    let pool = node.pool
    let tables = node.engine.tables
    try await pool.write { db in try body(tables, db) }
    await node.stop()
  }

  @Test func `a deduplication id is known for an hour of timetokens, with its end`() async throws {
    try await withTables { tables, db in
      func publish(_ id: String, at time: Int64, after count: Int = 0) throws -> Int64? {
        let others = (0..<count).map { Message("other \($0)") }
        let message = Message("one", id: id)
        return try tables.at(time).apply(others + [message], in: db).last?.rawValue
      }
      let first = try publish("a", at: Self.start)
      #expect(first == Self.start)
      #expect(try publish("a", at: Self.start + Self.hour) == first)
      let next = Self.start + Self.hour + 100
      #expect(try publish("a", at: next) == next)
      // The message's own timetoken counts, not that of its record.
      let later = Self.start + 3 * Self.hour
      #expect(try publish("b", at: later, after: 3) == later + 300)
      #expect(try publish("b", at: later + Self.hour + 300) == later + 300)
      #expect(try publish("b", at: later + Self.hour, after: 4) == later + Self.hour + 400)
    }
  }

  @Test func `a salvage marks a member's home`() async throws {
    let node = try await TestNode(TestShard(), member: 1)
    let pool = node.pool
    try await node.engine.publish(Message("one"))
    await node.stop()
    _ = try MessageRepairer.run(pool, lostDeliveries: false)
    let hasMark = try await pool.read { try $0.tableExists(MessageRepairer.memberMark) }
    #expect(hasMark)
  }

  @Test func `what is not due is no candidate for a lease`() async throws {
    try await withTables { tables, db in
      let at = tables.at(Self.start)
      _ = try QueueOperation.addConsumer(.default, of: .orders, maximumAttempts: nil).run(at, db)
      let delayed = (0..<50).map {
        Message(
          channel: .orders, payload: Array("\($0)".utf8), availability: .after(.seconds(60)))
      }
      _ = try at.apply(delayed + [Message("due")], in: db)
      func candidates(_ time: Int64) throws -> Int {
        var count = 0
        try tables.at(time).candidates(of: .orders, for: .default, in: db) { _ in
          count += 1
          return true
        }
        return count
      }
      #expect(try candidates(Self.start + 100_000) == 1)
      #expect(try candidates(Self.start + 700_000_000) == 51)
    }
  }
}
