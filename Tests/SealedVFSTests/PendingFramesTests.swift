import FaultVFS
import FileLayer
import FileRecording
import SystemPackage
import Testing

@testable import SealedVFS

/// Frames that are gathered in memory before they are written.
@Suite struct PendingFramesTests {
  /// A connection in WAL mode with a small cache, from which pages are spilled during a
  /// transaction.
  private static func spilling(synchronous: String) throws -> (TemporaryDatabase, SQLConnection) {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.run("PRAGMA synchronous = \(synchronous); PRAGMA cache_size = 10")
    try connection.fill(400)
    return (place, connection)
  }

  @Test(arguments: ["OFF", "NORMAL", "FULL"])
  func `a commit is in the log when it returns, also with recomputed checksums`(
    synchronous: String
  ) throws {
    let (place, connection) = try Self.spilling(synchronous: synchronous)
    for mark in ["a", "b", "c"] {
      // Pages are written twice within the transaction, so that SQLite computes checksums again.
      try connection.run(
        """
        BEGIN; UPDATE t SET text = text || 'x'; UPDATE t SET text = text || '\(mark)'; COMMIT
        """)
      let killed = try place.afterKill()
      #expect(try killed.query("SELECT count(*) FROM t WHERE text LIKE '%\(mark)'") == "400")
      #expect(try killed.query("PRAGMA integrity_check") == "ok")
    }
  }

  @Test(arguments: ["ROLLBACK", "ROLLBACK TO s; RELEASE s; ROLLBACK"])
  func `rolled-back frames never overwrite the next writer's frames`(undoing: String) throws {
    let (place, first) = try Self.spilling(synchronous: "OFF")
    let second = try place.open()
    try second.run("PRAGMA synchronous = OFF")
    for round in 1...12 {
      // After a checkpoint SQLite reads pages from the database, so that no read asks for the
      // frames of spilled pages. The number of pending frames at the rollback differs in each
      // round.
      try first.run("PRAGMA wal_checkpoint(TRUNCATE)")
      try first.run(
        "BEGIN; SAVEPOINT s; UPDATE t SET text = text || 'lost' WHERE id <= \(100 + round * 8); \(undoing)"
      )
      try second.run("UPDATE t SET text = 'kept \(round)' WHERE id % 3 = 0")
      #expect(try first.first("SELECT count(*) FROM t WHERE text = 'kept \(round)'") == "133")
      try first.run("UPDATE t SET text = text || '!' WHERE id = 1")
      let killed = try place.afterKill()
      #expect(try killed.query("SELECT count(*) FROM t WHERE text = 'kept \(round)'") == "133")
      #expect(try killed.query("SELECT count(*) FROM t WHERE text LIKE '%lost%'") == "0")
      #expect(try killed.query("PRAGMA integrity_check") == "ok")
    }
  }

  @Test func `a transaction of many pages reaches the log in few writes`() throws {
    let place = TemporaryDatabase()
    let recorder = FileRecorder()
    let connection = try place.connect(over: RecordingVFS(recorder).name)
    try connection.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    try connection.fill(400)
    let writes = recorder.events.compactMap { event in
      if case .write(place.log, let offset, let bytes) = event, offset >= 32 {
        bytes.count
      } else {
        nil
      }
    }
    let killed = try place.afterKill()
    let frameCount = try (killed.bytes(killed.log).count - 32) / 4120
    #expect(frameCount > 32)
    #expect(writes.allSatisfy { $0 % 4120 == 0 })
    #expect(writes.reduce(0, +) == frameCount * 4120)
    #expect(writes.contains(16 * 4120))
  }

  /// A transaction that continues after its second statement failed.
  ///
  /// SQLite allows this if a full disk failed only that statement. Reading a page that was spilled
  /// writes the frames of the first statement.
  private static let statements = [
    "BEGIN", insertion, "UPDATE u SET text = text || 'x' WHERE id < 20", "COMMIT",
  ]
  private static let insertion = """
    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
    INSERT INTO u SELECT i, hex(zeroblob(700)) FROM n
    """

  /// Runs the statements on a disk that is full at one step, and checks the remaining rows.
  ///
  /// - Returns: the steps of the disk that belong to the statements.
  private func transaction(
    _ statements: [String], cachedPageCount: Int, fullAt step: Int?
  ) throws -> Range<Int> {
    let place = TemporaryDatabase()
    let fault = step.map { FileRecorder.Fault.failure(atEvent: $0, .noSpace) }
    let recorder = FileRecorder(fault: fault)
    let connection = try place.connect(over: RecordingVFS(recorder).name)
    try connection.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    try connection.run("PRAGMA synchronous = OFF; PRAGMA cache_size = \(cachedPageCount)")
    try connection.run("CREATE TABLE u (id INTEGER PRIMARY KEY, text TEXT CHECK (text > ''))")
    let first = recorder.failableEventCount
    for statement in statements { _ = try? connection.run(statement) }
    _ = try? connection.run("ROLLBACK")
    let steps = first..<recorder.failableEventCount

    let question = "SELECT count(*) || ' ' || sum(length(text)) || ' ' || sum(id) FROM u"
    let killed = try place.afterKill()
    #expect(try killed.query(question) == connection.first(question), "step \(step ?? -1)")
    #expect(try killed.query("PRAGMA integrity_check") == "ok", "step \(step ?? -1)")
    #expect(try connection.first("PRAGMA integrity_check") == "ok", "step \(step ?? -1)")
    return steps
  }

  @Test func `a disk that is full for one step loses no frame of a later commit`() throws {
    let steps = try transaction(Self.statements, cachedPageCount: 10, fullAt: nil)
    #expect(steps.count > 10)
    for step in steps {
      _ = try transaction(Self.statements, cachedPageCount: 10, fullAt: step)
    }
  }

  /// SQLite reads page 1 during the rollback, and that read writes pending frames.
  @Test func `a commit that a full disk refused never reaches the log`() throws {
    let steps = try transaction([Self.insertion], cachedPageCount: 100, fullAt: nil)
    #expect(!steps.isEmpty)
    for step in steps {
      _ = try transaction([Self.insertion], cachedPageCount: 100, fullAt: step)
    }
  }
}
