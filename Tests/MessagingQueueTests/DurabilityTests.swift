import FileRecording
import GRDB
import MessagingQueue
import QueueFixture
import SystemPackage
import Testing

@Suite struct DurabilityTests {
  @Test func `every acknowledgement comes after a sync of the last write`() throws {
    let engine = RecordedEngine()
    try engine.withDatabase(isRecorded: true) { try engine.work($0) }
    var unsynchronized: Set<FilePath> = []
    var syncCount = 0
    for event in engine.recorder.events {
      switch event {
      case .write(let path, _, _): unsynchronized.insert(path)
      case .synchronize(let path):
        unsynchronized.remove(path)
        syncCount += 1
      case .mark(let note):
        #expect(unsynchronized.isEmpty, "\(note)")
        if !note.hasPrefix("acknowledging") {
          #expect(syncCount > 0, "\(note)")
          syncCount = 0
        }
      default: break
      }
    }
  }

  @Test func `a kill or a power cut at any step loses no acknowledged message`() throws {
    let engine = RecordedEngine()
    try engine.withDatabase(isRecorded: true) { try engine.work($0) }
    let events = engine.recorder.events
    for (count, loss) in Self.ends(of: events) {
      let copy = engine.copy(after: events[..<count], loss)
      try Self.check(copy.texts(), against: events[..<count], "\(count) \(loss)")
    }
  }

  @Test func `a commit that need not be durable is so with the next one that is`() async throws {
    let engine = RecordedEngine()
    let pool = try engine.openPool(isRecorded: true)
    let commits = try TestQueue(pool: pool, time: engine.time).engine.commits
    try await commits.run(during: "noting") { db in
      try db.execute(sql: "CREATE TABLE note (text TEXT NOT NULL)")
    }
    for (text, isDurable) in [("a", false), ("b", false), ("c", true), ("d", false)] {
      try await commits.run(during: "noting", isDurable: isDurable) { db in
        try db.execute(sql: "INSERT INTO note VALUES (?)", arguments: [text])
      }
      engine.recorder.mark("noted")
    }
    try await pool.write { db in
      #expect(try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2)
      try db.execute(sql: "INSERT INTO note VALUES ('e')")
    }
    engine.recorder.mark("noted")
    let events = engine.recorder.events
    let ends = events.indices.filter { if case .mark = events[$0] { true } else { false } }
    let kept = try ends.map { end in
      try [DiskReplay.Loss.everythingUnsynchronized, .nothing].map { loss in
        let copy = engine.copy(after: events[...end], loss)
        return try copy.openPool(isRecorded: false).read { db in
          try String.fetchAll(db, sql: "SELECT text FROM note ORDER BY rowid").joined()
        }
      }
    }
    #expect(
      kept == [["", "a"], ["", "ab"], ["abc", "abc"], ["abc", "abcd"], ["abcde", "abcde"]])
  }

  @Test func `a durable commit is synchronized however the connection was left`() async throws {
    let engine = RecordedEngine()
    let pool = try engine.openPool(isRecorded: true)
    let commits = try TestQueue(pool: pool, time: engine.time).engine.commits
    try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = NORMAL") }
    try await commits.run(during: "noting") { db in
      try db.execute(sql: "CREATE TABLE note (text TEXT NOT NULL)")
    }
    let copy = engine.copy(after: engine.recorder.events[...], .everythingUnsynchronized)
    #expect(try await copy.openPool(isRecorded: false).read { try $0.tableExists("note") })
  }

  /// The moments to check: a power cut after each sync or note, where it can make a difference; a
  /// kill after each note and every few writes.
  private static func ends(of events: [FileEvent]) -> [(count: Int, loss: DiskReplay.Loss)] {
    (1...events.count).flatMap { count -> [(Int, DiskReplay.Loss)] in
      switch events[count - 1] {
      case .mark: [(count, .everythingUnsynchronized), (count, .nothing)]
      case .synchronize, .synchronizeDirectory: [(count, .everythingUnsynchronized)]
      case .write where count % 5 != 0: []
      default: [(count, .nothing)]
      }
    }
  }

  @Test func `a full disk at any write gives an error and leaves no partial change`() throws {
    let rehearsal = RecordedEngine()
    try rehearsal.withDatabase(isRecorded: true) { try rehearsal.work($0) }
    for number in 0..<rehearsal.recorder.failableEventCount {
      let engine = RecordedEngine(fault: .failure(atEvent: number, .noSpace))
      do {
        try engine.withDatabase(isRecorded: true) { try engine.work($0) }
      } catch let error as EngineError {
        #expect(
          [.diskFull, .inputOutput, .outcomeUnknown].contains(error.code), "\(number): \(error)")
      } catch {
        // The fault came before there was an engine.
      }
      try Self.check(engine.texts(), against: engine.recorder.events, "\(number)")
    }
  }

  /// Every acknowledged message is there once and in order, a batch is complete or absent, and
  /// acknowledged messages are gone.
  private static func check(
    _ texts: [String], against events: some Sequence<FileEvent>, _ comment: String
  ) throws {
    let marks = RecordedEngine.marks(events)
    let published = marks.flatMap { mark in
      mark.hasPrefix("published ") ? mark.split(separator: " ").dropFirst().map(String.init) : []
    }
    let possiblyGone = marks.contains("acknowledging a") ? ["a"] : []
    let all = ["a", "b", "c"] + RecordedEngine.many
    #expect(texts == all.filter(texts.contains), "\(comment)")
    #expect(Set(published).subtracting(texts).isSubset(of: possiblyGone), "\(comment)")
    if marks.contains("acknowledged a") { #expect(!texts.contains("a"), "\(comment)") }
    let manyCount = texts.filter(RecordedEngine.many.contains).count
    #expect(manyCount == 0 || manyCount == RecordedEngine.many.count, "\(comment)")
    #expect(texts.contains("b") || !texts.contains("c"), "\(comment)")
  }
}
