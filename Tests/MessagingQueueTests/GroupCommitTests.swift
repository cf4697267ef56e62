import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import TestSupport
import Testing

@Suite struct GroupCommitTests {
  let plain: PlainEngine
  let reports = Reports()
  let commits: CommitQueue

  init() throws {
    plain = try PlainEngine()
    let reports = reports
    commits = CommitQueue(plain.pool) { reports.append($0) }
    try plain.pool.write { db in try db.execute(sql: "CREATE TABLE note (text TEXT NOT NULL)") }
  }

  private func note(_ text: String, then fault: (any Error)? = nil) async -> EngineError.Code? {
    await code {
      try await commits.run(during: "noting", byteCount: text.utf8.count) { db in
        try db.execute(sql: "INSERT INTO note VALUES (?)", arguments: [text])
        if let fault { throw fault }
      }
    }
  }

  private var notes: [String] {
    get throws {
      try plain.pool.writeWithoutTransaction { db in
        try String.fetchAll(db, sql: "SELECT text FROM note ORDER BY rowid")
      }
    }
  }

  /// Starts callers one after another while the writer is held, so that all of them wait.
  private func together(
    _ callers: [@Sendable () async -> EngineError.Code?]
  ) async throws -> [EngineError.Code?] {
    let gate = WriterGate(plain.pool)
    async let results = withThrowingTaskGroup(of: (Int, EngineError.Code?).self) { group in
      for (index, caller) in callers.enumerated() {
        group.addTask {
          let result = await caller()
          return (index, result)
        }
        try await eventually { commits.waitingCount == index + 1 }
      }
      gate.open()
      var results: [EngineError.Code?] = Array(repeating: nil, count: callers.count)
      for try await (index, result) in group { results[index] = result }
      return results
    }
    return try await results
  }

  @Test func `callers that wait at the same time share one commit`() async throws {
    let results = try await together((0..<20).map { index in { await note("\(index)") } })
    #expect(results.allSatisfy { $0 == nil })
    #expect(try notes == (0..<20).map(String.init))
    #expect(reports.operationCounts == [20])
    #expect(try plain.number("SELECT commit_number FROM engine") == 2)
  }

  @Test func `a commit is shared by what must be durable, or by what need not be`() async throws {
    let results = try await together(
      [true, true, false, false, true].map { isDurable in
        {
          await code {
            try await commits.run(during: "noting", isDurable: isDurable) { db in
              try db.execute(sql: "INSERT INTO note VALUES (?)", arguments: ["\(isDurable)"])
            }
          }
        }
      })
    #expect(results.allSatisfy { $0 == nil })
    #expect(reports.operationCounts == [2, 2, 1])
  }

  @Test func `messages that fail in a shared commit do not change its sums`() async throws {
    try await plain.pool.write { db in
      try db.execute(
        sql: """
          CREATE TRIGGER refusal BEFORE INSERT ON message WHEN NEW.payload = CAST('bad' AS BLOB)
          BEGIN SELECT RAISE(ABORT, 'no'); END
          """)
    }
    let groups = [["a"], ["b", "bad"], ["bad"], ["c", "d"], ["bad"], ["e"]]
    let results = try await together(groups.map { texts in { await publish(texts) } })
    #expect(results.map { $0 == nil } == groups.map { !$0.contains("bad") })
    #expect(reports.operationCounts == [3])
    let stored = try plain.text(
      "SELECT group_concat(CAST(payload AS TEXT), '') FROM (SELECT * FROM message ORDER BY timetoken)"
    )
    #expect(stored == "acde")
    #expect(try plain.number("SELECT message_count FROM channel") == 4)
    #expect(try plain.number("SELECT byte_count FROM channel") == 4)
    #expect(
      try plain.number("SELECT timetoken_high_water FROM engine")
        ?? 0 >= plain.number("SELECT max(timetoken) FROM message") ?? .max)
  }

  private func publish(_ texts: [String]) async -> EngineError.Code? {
    await code {
      _ = try await commits.publish(
        texts.map { Message(channel: .orders, payload: Array($0.utf8)) },
        on: plain.database.engine.tables)
    }
  }

  @Test(arguments: [0, 1, 2]) func `an operation that fails undoes no other`(
    bad: Int
  ) async throws {
    let fault = EngineError(.invalidArgument, "no")
    let results = try await together(
      (0..<3).map { index in { await note("\(index)", then: index == bad ? fault : nil) } })
    #expect(results == (0..<3).map { $0 == bad ? .invalidArgument : nil })
    #expect(try notes == (0..<3).filter { $0 != bad }.map(String.init))
  }

  @Test func `operations of a lost transaction run again, each in a transaction of its own`()
    async throws
  {
    let results = try await together([
      { await note("a") }, { await note("b") },
      {
        await code {
          try await commits.run(during: "losing") { db in
            // SQLite does this by itself when the disk is full.
            try db.execute(sql: "ROLLBACK")
            throw DatabaseError(resultCode: .SQLITE_FULL)
          }
        }
      },
      { await note("c") },
    ])
    #expect(results == [nil, nil, .diskFull, nil])
    #expect(try notes == ["a", "b", "c"])
  }

  @Test func `operations that waited for another process fail with busy`() async throws {
    try await plain.pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA busy_timeout = 10")
    }
    let other = WriterGate(try DatabasePool(path: plain.pool.path), holding: "BEGIN IMMEDIATE")
    let results = try await together([{ await note("a") }, { await note("b") }])
    #expect(results == [.busy, .busy])
    other.open()
    #expect(await note("c") == nil)
    #expect(try notes == ["c"])
  }

  @Test func `a group has a limit of operations and of bytes`() async throws {
    _ = try await together(
      (0..<5).map { index in
        { await note(String(repeating: "\(index)", count: 2 << 20)) }
      })
    #expect(reports.operationCounts == [2, 2, 1])
  }

  @Test func `a caller that is cancelled before its turn changes nothing`() async throws {
    let gate = WriterGate(plain.pool)
    let first = Task { await note("first") }
    try await eventually { commits.waitingCount == 1 }
    let second = Task { await note("second") }
    try await eventually { commits.waitingCount == 2 }
    second.cancel()
    #expect(await second.value == .cancelled)
    gate.open()
    #expect(await first.value == nil)
    #expect(try notes == ["first"])
  }

  @Test func `an operation of a cancelled task never runs`() async throws {
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await note("never")
    }
    #expect(await task.value == .cancelled)
    #expect(try notes == [])
  }

  @Test func `a caller that is cancelled after its turn gets the result`()
    async throws
  {
    let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let task = Task {
      await code {
        try await commits.run(during: "noting") { db in
          entered.signal()
          leave.wait()
          try db.execute(sql: "INSERT INTO note VALUES ('late')")
        }
      }
    }
    await wait(for: entered)
    task.cancel()
    leave.signal()
    #expect(await task.value == nil)
    #expect(try notes == ["late"])
  }

  @Test func `close() finishes waiting operations and takes no more`() async throws {
    let gate = WriterGate(plain.pool)
    let waiting = Task { await note("waiting") }
    try await eventually { commits.waitingCount == 1 }
    let closing = Task { await commits.close(refusing: EngineError(.stopped, "stopped")) }
    try await eventually { commits.isClosed }
    #expect(await note("late") == .stopped)
    gate.open()
    await closing.value
    #expect(await waiting.value == nil)
    #expect(try notes == ["waiting"])
    await commits.close(refusing: EngineError(.stopped, "stopped"))
  }
}
