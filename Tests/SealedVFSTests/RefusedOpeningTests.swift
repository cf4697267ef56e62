import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import TestSupport
import Testing

/// The error of an opening that fails, and the files that it leaves.
@Suite struct RefusedOpeningTests {
  /// The files after a kill that left a log with committed frames.
  private func killed(rowCount: Int = 300) throws -> TemporaryDatabase {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: rowCount, mode: "WAL")
    try connection.run(
      "PRAGMA wal_autocheckpoint = 0; CREATE TABLE u (a); INSERT INTO u VALUES (1)")
    return try place.afterKill()
  }

  @Test(arguments: ["-wal", "-shm", "-journal"], ["WAL", "DELETE"])
  func `a named pipe in the place of a log, index or journal is refused, and nothing waits for it`(
    suffix: String, mode: String
  ) throws {
    let place = try TemporaryDatabase.made(mode: mode)
    try? FileManager.default.removeItem(atPath: place.log.string)
    let pipe = place.database.string + suffix
    #expect(mkfifo(pipe, 0o600) == 0)
    if suffix != "-shm" {
      let failure = #expect(throws: SealedDatabaseError.self) { try place.verify() }
      #expect(failure?.code == .inputOutput && failure?.detail == "\(pipe) is not a regular file")
    }
    // SQLite looks for a log and its index beside a database in WAL mode alone.
    guard suffix == "-journal" || mode == "WAL" else { return }
    place.expectFault(.inputOutput) { try place.connect().run("SELECT count(*) FROM t") }
    #expect(place.fault?.detail?.hasSuffix("is not a regular file") == true)
  }

  @Test(arguments: ["", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode = DELETE"])
  func `a database refused for a damaged page keeps its log`(after statement: String) throws {
    let killed = try killed()
    try killed.change(killed.database) { $0[5 * 4096 + 100] ^= 1 }
    let before = try killed.contents()
    #expect((before["test.db-wal"] ?? []).count > 4120)
    let connection = try killed.connect()
    killed.expectFault(.damagedPage) { try connection.run("SELECT sum(length(text)) FROM t") }
    if statement == "PRAGMA journal_mode = DELETE" {
      // Leaving WAL mode needs a checkpoint, which must fail.
      #expect(throws: SQLFailure.self) { try connection.run(statement) }
    }
    connection.close()
    #expect(try killed.changes(since: before).isEmpty)
    if statement.contains("checkpoint") {
      // An explicit checkpoint works, because the frames are whole.
      try killed.open().run(statement)
      #expect(!killed.exists(killed.log))
    }
  }

  @Test(arguments: ["", "PRAGMA wal_checkpoint(TRUNCATE)"])
  func `a database with a damaged page 1 keeps its log even on a checkpoint request`(
    statement: String
  ) throws {
    // The log holds no page 1: one row more changes a leaf.
    let (place, writer) = try TemporaryDatabase.reopened(mode: "WAL")
    try writer.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET text = 'x' WHERE id = 7")
    let killed = try place.afterKill()
    try killed.change(killed.database) { $0[2000] ^= 1 }
    let before = try killed.contents()
    let connection = try killed.connect()
    #expect(throws: SQLFailure.self) { try connection.rowCount }
    #expect(killed.fault?.code == .damagedPage && killed.fault?.pageNumber == 1)
    #expect(throws: SQLFailure.self) {
      try connection.run(statement)
      try connection.run("SELECT * FROM t")
    }
    connection.close()
    #expect(try killed.changes(since: before).isEmpty)
  }

  @Test func `closing the last connection of an intact database checkpoints and deletes the log`()
    throws
  {
    let killed = try killed()
    let connection = try killed.connect()
    #expect(try connection.rowCount == "300")
    #expect(connection.close() == SQLITE_OK)
    #expect(killed.fileNames == ["test.db"])
  }

  @Test func `closing a new database checkpoints and deletes its first log`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.run("PRAGMA journal_mode = WAL")
    try connection.fill(10)
    connection.close()
    #expect(place.fileNames == ["test.db"])
  }

  @Test func `a sparse log of one tebibyte does not delay the opening`() throws {
    let killed = try killed()
    try killed.change(killed.log) { $0[$0.count - 2000] ^= 1 }
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: killed.log.string))
    try handle.truncate(atOffset: 1 << 40)
    try handle.close()
    var rowCount: String?
    let time = try processorTime { rowCount = try killed.connect().rowCount }
    #expect(rowCount == "300")
    #expect(time < .seconds(20))
    #expect(killed.discardedLogTail?.frameCount == 1)
  }

  @Test func `a short file with its missing pages in the log is not reported as truncated`() throws
  {
    let (place, writer) = try TemporaryDatabase.reopened(rowCount: 10, mode: "WAL")
    try writer.run("PRAGMA wal_autocheckpoint = 0")
    try writer.fill(600, from: 100)
    let cut = try place.afterKill()
    try writer.run("PRAGMA wal_checkpoint(FULL)")
    // A power cut during the checkpoint: page 1 is new, and the last pages are missing.
    let finished = try place.afterKill()
    try cut.write(Array(finished.bytes(finished.database).prefix(6 * 4096)), to: cut.database)
    let connection = try cut.connect()
    #expect(try connection.rowCount == "610")
    #expect(try connection.integrity == "ok")
    #expect(cut.fault == nil)
  }

  @Test(arguments: ["DELETE", "WAL"])
  func `a truncated file without a log is reported as truncated`(mode: String) throws {
    let place = try TemporaryDatabase.made(mode: mode)
    try place.change(place.database) { $0.removeLast(4096) }
    place.expectFault(.truncated) { try place.connect().rowCount }
  }

  @Test func `a disk without room for the log's index is reported as SQLITE_FULL`() throws {
    let place = try TemporaryDatabase.made(mode: "WAL")
    try place.register(over: FullDiskVFS.register())
    let failure = #expect(throws: SQLFailure.self) { try place.open().rowCount }
    #expect(failure?.code == SQLITE_FULL)
  }
}
