import Foundation
import GRDB
import MessagingQueue
import Synchronization
import Testing

/// Reads and writes of the engine's caller, while the engine runs, stops and has stopped.
@Suite struct PoolAccessTests {
  private let plain: PlainEngine
  private let access: PoolAccess

  init() throws {
    plain = try PlainEngine()
    access = PoolAccess(plain.pool)
  }

  @Sendable private static func count(_ db: Database) throws -> Int? {
    try Int.fetchOne(db, sql: "SELECT count(*) FROM message")
  }

  @Test func `a closed access refuses reads and writes without using the pool`() async throws {
    #expect(try access.readBlocking(Self.count) == 0)
    #expect(try await access.read(during: "reading", Self.count) == 0)
    access.close()
    // The pool is still open, so the access itself refuses.
    #expect(await code { _ = try await access.read(Self.count) } == .stopped)
    #expect(await code { try await access.write { _ in } } == .stopped)
    #expect(await code { try await access.onWriter(during: "writing") { _ in } } == .stopped)
    #expect(code { _ = try access.readBlocking(Self.count) } == .stopped)
    #expect(await code { _ = try await access.read(during: "reading", Self.count) } == .stopped)
    #expect(try await plain.pool.read(Self.count) == 0)
  }

  @Test func `reads and writes that begin while the engine stops end with stopped`() async throws {
    for _ in 0..<60 {
      let engine = try plain.neighbour()
      let callers = (0..<8).map { number in Task { await engine.callUntilRefused(number) } }
      try await engine.stop()
      for caller in callers { #expect(await caller.value == .stopped) }
    }
  }

  @Test func `stop() closes the database only after a caller's read has ended`()
    async throws
  {
    let closed = DispatchSemaphore(value: 0)
    let engine = try plain.engine {
      $0.stopTimeout = .milliseconds(1)
    } closePool: {
      closed.signal()
    }
    let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let reading = Task {
      try await engine.read { db in
        entered.signal()
        leave.wait()
        return try Self.count(db)
      }
    }
    await wait(for: entered)
    #expect(await code { try await engine.stop() } == .busy)
    #expect(await code { try await engine.read { _ in } } == .stopped)
    leave.signal()
    _ = await reading.result
    await wait(for: closed)
    #expect(engine.state == .stopped)
  }

  @Test func `a stop interrupts a caller's read after its timeout`() async throws {
    let engine = try plain.engine { $0.stopTimeout = .milliseconds(1) }
    let entered = DispatchSemaphore(value: 0)
    let reading = Task {
      try await engine.read { db in
        entered.signal()
        return try Int.fetchOne(
          db,
          sql:
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        )
      }
    }
    await wait(for: entered)
    try await engine.stop()
    #expect(await code { _ = try await reading.value } == .stopped)
  }

  @Test func `a caller's write whose turn comes after the stop began commits nothing`()
    async throws
  {
    let isStopping = Mutex(false)
    let checked = DispatchSemaphore(value: 0)
    let access = PoolAccess(plain.pool) {
      checked.signal()
      return isStopping.withLock { $0 } ? EngineError(.stopped, "stopped") : nil
    }
    let gate = WriterGate(plain.pool)
    let writing = Task {
      await code { try await access.write { try $0.execute(sql: "CREATE TABLE late (x)") } }
    }
    await wait(for: checked)
    // Nothing shows that the write is in the connection's queue, where it would check nothing more.
    try await Task.sleep(for: .milliseconds(300))
    isStopping.withLock { $0 = true }
    gate.open()
    #expect(await writing.value == .stopped)
    #expect(try await plain.pool.read { try !$0.tableExists("late") })
  }

  @Test func `the errors of a caller's read and write are its own, unchanged`() async throws {
    struct Fault: Error {}
    let engine = try plain.engine()
    await #expect(throws: Fault.self) { try await engine.read { _ in throw Fault() } }
    await #expect(throws: Fault.self) { try await engine.write { _ in throw Fault() } }
    let error = await #expect(throws: DatabaseError.self) {
      try await engine.write { try $0.execute(sql: "INSERT INTO missing VALUES (1)") }
    }
    #expect(error?.resultCode == .SQLITE_ERROR)
    await #expect(throws: DatabaseError.self) {
      try await engine.read { try $0.execute(sql: "DELETE FROM engine") }
    }
    // A constraint that is checked at the commit.
    try await engine.write { db in
      try db.execute(
        sql: """
          CREATE TABLE invoice (number INTEGER PRIMARY KEY);
          CREATE TABLE line (invoice REFERENCES invoice DEFERRABLE INITIALLY DEFERRED)
          """)
    }
    let violation = await #expect(throws: DatabaseError.self) {
      try await engine.write { try $0.execute(sql: "INSERT INTO line VALUES (17)") }
    }
    #expect(violation?.resultCode == .SQLITE_CONSTRAINT)
    #expect(try plain.number("SELECT count(*) FROM line") == 0)
  }

  @Test func `a read or write of a cancelled task never begins, and one that has begun completes`()
    async throws
  {
    let engine = try plain.engine()
    let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let writing = Task {
      try await engine.write { db in
        entered.signal()
        leave.wait()
        try db.execute(sql: "CREATE TABLE mine (number)")
      }
      #expect(await code { try await engine.write { _ in } } == .cancelled)
      #expect(await code { try await engine.read { _ in } } == .cancelled)
    }
    await wait(for: entered)
    writing.cancel()
    leave.signal()
    try await writing.value
    #expect(try plain.number("SELECT count(*) FROM mine") == 0)
  }
}

extension MessagingEngine {
  /// Reads or writes until the engine refuses, and returns why.
  func callUntilRefused(_ number: Int) async -> EngineError.Code? {
    while true {
      do {
        if number.isMultiple(of: 2) {
          _ = try await read { try Int.fetchOne($0, sql: "SELECT count(*) FROM message") }
        } else {
          try await write { try $0.execute(sql: "PRAGMA user_version") }
        }
      } catch {
        // The errors of a closed database have no code.
        return (error as? EngineError)?.code
      }
    }
  }
}
