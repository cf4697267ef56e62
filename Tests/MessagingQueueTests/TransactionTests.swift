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
    let engine = try await Self.engine(recorded, pool)
    try await body(recorded, engine)
    // Its notifier can be reading, and a pool that closes then traps.
    try await engine.stop()
    try pool.close()
  }

  @Test func `an engine refuses the connection of another engine`() async throws {
    let (plain, other) = (try PlainEngine(), try PlainEngine())
    let engine = try plain.engine()
    let otherEngine = try other.engine()
    let message = Message(channel: RecordedEngine.channel, "text")
    try await otherEngine.write { db in
      #expect(code { try engine.publish(message, in: db) } == .invalidArgument)
      #expect(
        code { _ = try engine.receive(from: message.channel, in: db) } == .invalidArgument)
      try otherEngine.publish(message, in: db)
    }
    #expect(try await engine.statistics().messageCount == 0)
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
      // Without a waiter, nothing but a commit that wakes changes the generation.
      let generation = engine.messageGeneration
      try await engine.write { db in
        try Self.write("first", engine, db)
        #expect(engine.messageGeneration == generation)
      }
      #expect(engine.messageGeneration > generation)
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
      #expect(try await engine.history(of: RecordedEngine.channel).map(\.text) == ["first"])
      leave.signal()
      try await writing.value
      #expect(try await next.value == Array("a".utf8))
    }
  }

  @Test(arguments: Settling.allCases)
  func `rows and a settlement are committed together, or not at all`(_ settling: Settling)
    async throws
  {
    try await withEngine { recorded, engine in
      try await engine.publish(["a", "b"], to: RecordedEngine.channel)
      let held = try await engine.receive(from: RecordedEngine.channel)[0].token
      let generation = engine.messageGeneration
      struct Undone: Error {}
      await #expect(throws: Undone.self) {
        try await engine.write { db in
          try db.execute(sql: "INSERT INTO invoice VALUES ('gone')")
          try settling.run(engine, db, on: held)
          throw Undone()
        }
      }
      #expect(try Self.invoices(recorded) == [])
      let free = try await engine.receive(from: RecordedEngine.channel, maximumCount: 9)
      #expect(free.map(\.text) == ["b"])
      recorded.time.advance(by: .seconds(31))
      try await engine.write { db in
        try db.execute(sql: "INSERT INTO invoice VALUES ('kept')")
        try settling.run(engine, db)
        #expect(engine.messageGeneration == generation)
      }
      #expect((engine.messageGeneration > generation) == (settling == .releasing))
      #expect(try Self.invoices(recorded) == ["kept"])
      let rest = try await engine.receive(from: RecordedEngine.channel, maximumCount: 9)
      #expect(rest.map(\.text) == settling.rest)
      recorded.time.advance(by: .seconds(31))
      let later = try await engine.receive(from: RecordedEngine.channel, maximumCount: 9)
      #expect(later.map(\.text) == settling.later)
      let dead = try await engine.deadLetters(of: RecordedEngine.channel)
      #expect(dead.map(\.string) == (settling == .rejecting ? ["a"] : []))
    }
  }

  @Test func `a token that settles nothing undoes the transaction, unless its error is caught`()
    async throws
  {
    try await withEngine { recorded, engine in
      try await engine.publish(["a", "b"], to: RecordedEngine.channel)
      let held = try await engine.receive(from: RecordedEngine.channel, maximumCount: 2)
      let tokens = held.map(\.token)
      try await engine.acknowledge(tokens[0])
      let error = await engineError {
        try await engine.write { db in
          try db.execute(sql: "INSERT INTO invoice VALUES ('late')")
          try engine.acknowledge(tokens, in: db)
        }
      }
      #expect(error?.code == .unknownLease)
      #expect(error?.unknownLeases == [tokens[0]])
      #expect(try Self.invoices(recorded) == [])
      try await engine.extend(tokens[1], by: .seconds(30))
      try await engine.write { db in
        try db.execute(sql: "INSERT INTO invoice VALUES ('kept')")
        #expect(code { try engine.acknowledge(tokens, in: db) } == .unknownLease)
      }
      #expect(try Self.invoices(recorded) == ["kept"])
      #expect(await code { try await engine.extend(tokens[1], by: .seconds(30)) } == .unknownLease)
    }
  }

  @Test func `settling in a transaction needs an open one and valid arguments`() async throws {
    try await withEngine { _, engine in
      try await engine.publish(["a"], to: RecordedEngine.channel)
      let token = try await engine.receive(from: RecordedEngine.channel)[0].token
      let calls: [@Sendable (Database) throws -> Void] = [
        { try engine.acknowledge(token, in: $0) }, { try engine.release(token, in: $0) },
        { try engine.reject(token, reason: "no", in: $0) },
        { try engine.extend(token, by: .seconds(9), in: $0) },
        { _ = try engine.receive(from: RecordedEngine.channel, in: $0) },
      ]
      try await engine.pool.writeWithoutTransaction { db in
        for call in calls { #expect(code { try call(db) } == .invalidArgument) }
      }
      try await engine.write { db in
        #expect(code { try engine.reject(token, reason: "", in: db) } == .invalidArgument)
        #expect(code { try engine.extend(token, by: .zero, in: db) } == .invalidArgument)
        #expect(
          code { try engine.release(token, after: .seconds(-1), in: db) } == .invalidArgument)
        #expect(
          code { _ = try engine.receive(from: RecordedEngine.channel, maximumCount: 0, in: db) }
            == .invalidArgument)
      }
      try await engine.stop()
      try await engine.pool.write { db in
        for call in calls { #expect(code { try call(db) } == .stopped) }
      }
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

/// The ways to settle the message `a` in the caller's transaction.
enum Settling: CaseIterable, Sendable {
  case receiving, acknowledging, releasing, rejecting, extending

  /// - Parameter held: the token of `a`; without it, `a` is received in the transaction.
  func run(_ engine: MessagingEngine, _ db: Database, on held: LeaseToken? = nil) throws {
    let received = try engine.receive(from: RecordedEngine.channel, in: db)[0].token
    let token = held ?? received
    let changeCount = db.totalChangesCount
    switch self {
    case .receiving: break
    case .acknowledging: try engine.acknowledge(token, in: db)
    case .releasing: try engine.release(token, in: db)
    case .rejecting: try engine.reject(token, reason: "no", in: db)
    case .extending: try engine.extend(token, by: .seconds(3600), in: db)
    }
    // A settlement after the commit would have the same end.
    #expect(self == .receiving || db.totalChangesCount > changeCount)
  }

  /// What a receive then gets.
  var rest: [String] { self == .releasing ? ["a", "b"] : ["b"] }

  /// What a receive gets after the end of a lease that was not extended.
  var later: [String] { [.receiving, .releasing].contains(self) ? ["a", "b"] : ["b"] }
}
