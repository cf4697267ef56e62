import FileRecording
import Foundation
import GRDB
import MessagingQueue
import Testing

/// Messages and the caller's own rows in one transaction.
@Suite struct TransactionTests {
  private static func engine(_ recorded: RecordedEngine, _ pool: DatabasePool) async throws
    -> MessagingEngine
  {
    let engine = try MessagingEngine(pool: pool, time: recorded.time, isSecured: true)
    try await engine.write { db in
      try db.execute(sql: "CREATE TABLE IF NOT EXISTS invoice (text TEXT NOT NULL)")
    }
    return engine
  }

  private static func write(_ text: String, _ engine: MessagingEngine, _ db: Database) throws {
    try db.execute(sql: "INSERT INTO invoice VALUES (?)", arguments: [text])
    try engine.publish(
      Message(channel: RecordedEngine.channel, payload: Array(text.utf8)), in: db)
  }

  private static func invoices(_ recorded: RecordedEngine) throws -> [String] {
    let pool = try recorded.openPool(isRecorded: false)
    defer { try? pool.close() }
    return try pool.read { db in
      guard try db.tableExists("invoice") else { return [] }
      return try String.fetchAll(db, sql: "SELECT text FROM invoice ORDER BY rowid")
    }
  }

  private func withEngine(
    _ body: (RecordedEngine, MessagingEngine) async throws -> Void
  ) async throws {
    let recorded = RecordedEngine()
    let pool = try recorded.openPool(isRecorded: false)
    defer { try? pool.close() }
    try await body(recorded, Self.engine(recorded, pool))
  }

  @Test func `a caller's rows and messages are committed together, or not at all`() async throws {
    try await withEngine { recorded, engine in
      try await engine.write { db in try Self.write("kept", engine, db) }
      struct Refusal: Error {}
      await #expect(throws: Refusal.self) {
        try await engine.write { db in
          try Self.write("gone", engine, db)
          throw Refusal()
        }
      }
      #expect(try Self.invoices(recorded) == ["kept"])
      #expect(try recorded.texts() == ["kept"])
    }
  }

  @Test func `refused messages leave the caller's transaction unchanged`() async throws {
    try await withEngine { recorded, engine in
      let tooLarge = Message(
        channel: RecordedEngine.channel, payload: Array(repeating: 0, count: 2 << 20))
      try await engine.write { db in
        try Self.write("a", engine, db)
        #expect(code { try engine.publish([tooLarge], in: db) } == .payloadTooLarge)
        try Self.write("b", engine, db)
      }
      #expect(try recorded.texts() == ["a", "b"])
    }
  }

  @Test func `publishing in a transaction needs an open one and a running engine`() async throws {
    try await withEngine { _, engine in
      try await engine.pool.writeWithoutTransaction { db in
        #expect(code { try Self.write("a", engine, db) } == .invalidArgument)
      }
      try await engine.stop()
      try await engine.pool.write { db in
        #expect(code { try Self.write("a", engine, db) } == .stopped)
      }
    }
  }

  @Test func `the commit wakes waiting receivers, not the publish before it`() async throws {
    try await withEngine { _, engine in
      let messages = try await engine.messages(of: RecordedEngine.channel)
      let next = Task {
        for try await message in messages { return message.payload }
        return []
      }
      let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let writing = Task {
        try await engine.write { db in
          try Self.write("a", engine, db)
          entered.signal()
          leave.wait()
        }
      }
      await wait(for: entered)
      #expect(try await engine.history(of: RecordedEngine.channel).isEmpty)
      leave.signal()
      try await writing.value
      #expect(try await next.value == Array("a".utf8))
    }
  }

  @Test
  func `a power cut or a kill leaves rows and messages or neither, and both after the commit`()
    async throws
  {
    let recorded = RecordedEngine()
    let pool = try recorded.openPool(isRecorded: true)
    let engine = try await Self.engine(recorded, pool)
    recorded.recorder.mark("begin")
    for text in ["a", "b"] {
      try await engine.write { db in try Self.write(text, engine, db) }
      recorded.recorder.mark(text)
    }
    try pool.close()
    let events = recorded.recorder.events
    for count in 1...events.count {
      for loss in [DiskReplay.Loss.nothing, .everythingUnsynchronized] {
        let marks = RecordedEngine.marks(events[..<count])
        guard marks.contains("begin") else { continue }
        let copy = recorded.copy(after: events[..<count], loss)
        let invoices = try Self.invoices(copy)
        #expect(try copy.texts() == invoices, "\(count) \(loss)")
        #expect(invoices.starts(with: marks.dropFirst()), "\(count) \(loss)")
      }
    }
  }
}
