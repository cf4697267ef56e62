import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// The write-ahead log: recovery, encrypted headers and checkpoints.
@Suite struct LogTests {
  /// The files after transactions of 10 rows each have been committed into the log.
  private func killedLog(commits: Int) throws -> TemporaryDatabase {
    let (place, connection) = try TemporaryDatabase.logging()
    for commit in 0..<commits { try connection.fill(10, from: commit * 10 + 1) }
    return try place.afterKill()
  }

  /// The files after 20 such transactions with a change to the log, and the number of its frames.
  private func changedLog(
    _ change: (inout [UInt8]) -> Void
  ) throws -> (TemporaryDatabase, count: Int) {
    let killed = try killedLog(commits: 20)
    let count = try (killed.bytes(killed.log).count - 32) / 4120
    try killed.change(killed.log, change)
    return (killed, count)
  }

  @Test func `recovery keeps every committed frame`() throws {
    let killed = try killedLog(commits: 20)
    #expect(try killed.bytes(killed.log).count > 20 * 4120)
    #expect(try killed.query("SELECT count(*) FROM t") == "200")
    #expect(try killed.query("PRAGMA integrity_check") == "ok")
  }

  @Test func `a torn last frame ends the log at the last whole commit, and is reported`() throws {
    let (killed, count) = try changedLog { bytes in
      for index in 0..<512 { bytes[bytes.count - 1000 - index] = 0 }
    }
    let connection = try killed.connect()
    #expect(try connection.rowCount == "190")
    #expect(try connection.integrity == "ok")
    #expect(killed.discardedLogTail == DiscardedLogTail(firstFrame: count, frameCount: 1))
    // The remaining log accepts new commits.
    try connection.fill(10, from: 1000)
    #expect(try connection.rowCount == "200")
  }

  /// Changes a byte of the commit size, or of the page.
  @Test(arguments: [4, 5, 6, 7, 24 + 77])
  func `damage in the middle of the log ends it there, and later frames are counted`(
    byte: Int
  ) throws {
    let (killed, count) = try changedLog { $0[32 + 9 * 4120 + byte] ^= 1 }
    let rows = try #require(Int(try killed.connect().rowCount ?? ""))
    #expect(rows < 200 && rows % 10 == 0)
    #expect(killed.discardedLogTail == DiscardedLogTail(firstFrame: 10, frameCount: count - 9))
  }

  @Test func `a last commit without its commit size is reported`() throws {
    let (killed, count) = try changedLog { log in
      for byte in 4..<8 { log[log.count - 4120 + byte] = 0 }
    }
    #expect(try killed.connect().rowCount == "190")
    #expect(killed.discardedLogTail == DiscardedLogTail(firstFrame: count, frameCount: 1))
  }

  @Test(arguments: [3, 15])
  func `a log header that was changed and whose checksum fits is reported with all frames`(
    byte: Int
  ) throws {
    let (killed, count) = try changedLog { _ in }
    try killed.changeLogHeader { $0[byte] ^= 1 }
    _ = try? killed.connect().run("SELECT 1 FROM sqlite_schema")
    #expect(killed.discardedLogTail == DiscardedLogTail(firstFrame: 1, frameCount: count))
  }

  @Test func `a log cut within its last frame is not reported`() throws {
    let (killed, _) = try changedLog { $0.removeLast(1000) }
    #expect(try killed.connect().rowCount == "190")
    #expect(killed.discardedLogTail == nil)
  }

  @Test(arguments: [
    "BEGIN; UPDATE t SET text = text || 'x'; ROLLBACK; UPDATE t SET text = 'y' WHERE id = 1",
    "BEGIN; UPDATE t SET text = text || 'x'; UPDATE t SET text = text || 'z'",
  ])
  func `frames of a transaction that did not commit are not reported`(sql: String) throws {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.run("PRAGMA cache_size = 5")
    try connection.fill(2000)
    try connection.run(sql)
    let killed = try place.afterKill()
    // Frames of the log's generation lie behind the last that counts.
    let found = try killed.verify()
    #expect(found.log.discardedTail != nil && found.isClean)
    #expect(try killed.connect().rowCount == "2000")
    #expect(killed.discardedLogTail == nil)
  }

  @Test(arguments: [1, 13, 18, 22, 26, 31])
  func `a log whose header is damaged is not used, and all its frames are reported`(
    offset: Int
  ) throws {
    let (killed, count) = try changedLog { $0[offset] ^= 1 }
    let tail = DiscardedLogTail(firstFrame: 1, frameCount: count)
    #expect(try killed.verify().log.discardedTail == tail)
    _ = try? killed.connect().run("SELECT 1 FROM sqlite_schema")
    #expect(killed.discardedLogTail == tail)
  }

  @Test func `a database with a torn page 1 opens if the log has a good copy`() throws {
    let (place, connection) = try TemporaryDatabase.reopened(mode: "WAL")
    try connection.run(
      "PRAGMA wal_autocheckpoint = 0; CREATE TABLE u (a); INSERT INTO u VALUES (1)")
    let killed = try place.afterKill()
    try killed.change(killed.database) { bytes in
      for index in 512..<4096 { bytes[index] = 0 }  // a checkpoint's write, torn after a sector
    }
    #expect(try killed.query("SELECT count(*) FROM u") == "1")
    #expect(try killed.query("PRAGMA integrity_check") == "ok")
    // Without the log there is no good copy, and the read must fail.
    let lost = try place.afterKill()
    try lost.change(lost.database) { $0[3000] ^= 1 }
    try FileManager.default.removeItem(atPath: lost.log.string)
    #expect(throws: SQLFailure.self) { try lost.connect().run("SELECT * FROM u") }
    #expect(lost.fault?.code == .damagedPage && lost.fault?.pageNumber == 1)
  }

  @Test func `pages written again within a transaction survive a kill after its commit`() throws {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.run("PRAGMA cache_size = 5; BEGIN")
    try connection.fill(500)
    for round in 0..<4 { try connection.run("UPDATE t SET text = text || '\(round)'") }
    try connection.run("COMMIT")
    let killed = try place.afterKill()
    #expect(try killed.query("SELECT count(*) FROM t WHERE text LIKE 'canary%0123'") == "500")
    #expect(try killed.query("PRAGMA integrity_check") == "ok")
    // A transaction that is rolled back leaves no rows.
    try connection.run("BEGIN; UPDATE t SET text = text || 'x'; ROLLBACK")
    #expect(try connection.first("SELECT count(*) FROM t WHERE text LIKE '%x'") == "0")
    let after = try place.afterKill()
    #expect(try after.query("SELECT count(*) FROM t WHERE text LIKE '%x'") == "0")
  }

  @Test func `a frame moved to another place is an error, never another page's rows`() throws {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.fill(300)
    let expected = try connection.run("SELECT text FROM t ORDER BY id")
    // The log is in use: its index has the places of pages, so recovery does not run.
    try place.overwrite(place.log) { log in
      let starts = stride(from: 32, to: 32 + 8 * 4120, by: 4120)
      let reversed = starts.reversed().flatMap { log[$0..<$0 + 4120] }
      log.replaceSubrange(32..<32 + 8 * 4120, with: reversed)
    }
    let reader = try place.open()
    do {
      #expect(try reader.run("SELECT text FROM t ORDER BY id") == expected)
    } catch let failure as SQLFailure {
      #expect(failure.primaryCode == SQLITE_IOERR)
      #expect(place.fault?.code == .damagedPage)
    }
  }

  @Test func `salts and checksums of frame headers are encrypted on disk`() throws {
    let killed = try killedLog(commits: 5)
    let bytes = try killed.bytes(killed.log)
    let salts = Array(bytes[16..<24])
    let frames = stride(from: 32, to: bytes.count, by: 4120).map { Array(bytes[$0..<$0 + 24]) }
    #expect(frames.allSatisfy { Array($0[8..<16]) != salts })
    #expect(Set(frames.map { Array($0[8..<24]) }).count == frames.count)
    #expect(Array(bytes[4..<8]) == [0x00, 0x2D, 0xE2, 0x19])  // 3007001
  }

  @Test func `a checkpoint copies sealed pages unchanged`() throws {
    let (place, connection) = try TemporaryDatabase.reopened(mode: "WAL")
    try connection.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET text = text || '!'")
    let before = try place.afterKill()
    try connection.run("PRAGMA wal_checkpoint(FULL)")
    let after = try place.afterKill()
    let log = try before.bytes(before.log)
    var last: [UInt32: [UInt8]] = [:]
    for start in stride(from: 32, to: log.count, by: 4120) {
      let number = log[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
      last[number] = Array(log[start + 24..<start + 4120])
    }
    let database = try after.bytes(after.database)
    #expect(last.count > 10)
    for (number, page) in last {
      let isCopy = Array(database[page: Int(number)]) == page
      #expect(isCopy, "page \(number)")
    }
    #expect(try connection.integrity == "ok")
  }

  @Test func `a damaged page in the log stops the checkpoint before it reaches the database`()
    throws
  {
    let (place, connection) = try TemporaryDatabase.reopened(mode: "WAL")
    try connection.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET text = text || '!'")
    let start = 32 + 4 * 4120 + 24 + 100
    try place.overwrite(place.log) { $0.replaceSubrange(start..<start + 4, with: [1, 2, 3, 4]) }
    place.expectFault(.damagedPage) { try connection.run("PRAGMA wal_checkpoint(TRUNCATE)") }
    #expect(place.exists(place.log))
  }

  @Test func `a plain log beside the database is refused and not changed`() throws {
    let (place, plain) = (TemporaryDatabase(), TemporaryDatabase())
    try place.makeDatabase(mode: "WAL")
    let connection = try plain.open()
    try connection.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    try connection.fill(10)
    try place.write(try plain.afterKill().bytes(plain.log), to: place.log)
    let before = try place.contents()
    place.expectFault(.unrelatedCompanionFile) { try place.connect().run("SELECT * FROM t") }
    #expect(try place.changes(since: before).isEmpty)
  }

  @Test func `a log is not opened for a file that was replaced`() throws {
    let (place, idle) = try TemporaryDatabase.reopened()
    #expect(try idle.rowCount == "300")
    // Another program replaces the file by a new one with a log, as a key change does.
    let other = TemporaryDatabase()
    try other.write(try place.afterKill().bytes(place.database), to: other.database)
    let writer = try other.connect()
    try writer.run("PRAGMA journal_mode = WAL; DELETE FROM t")
    let image = try other.afterKill()
    try image.copy(to: place)
    try FileManager.default.removeItem(atPath: place.database.string)
    try image.copy(to: place)
    place.expectFault(.fileReplaced) { try idle.rowCount }
    let isUntouched = try place.bytes(place.log) == image.bytes(image.log)
    #expect(isUntouched)
  }

  @Test func `two connections share one log across its restarts`() throws {
    let place = TemporaryDatabase()
    try place.register()
    let (first, second) = (try place.open(), try place.open())
    try first.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 20")
    for round in 0..<40 {
      let writer = round % 2 == 0 ? first : second
      let reader = round % 2 == 0 ? second : first
      try writer.fill(20, from: round * 20 + 1)
      #expect(try reader.rowCount == "\((round + 1) * 20)")
    }
    #expect(try first.integrity == "ok")
  }

  @Test func `exclusive locking works without a shared-memory index`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL")
    try connection.run("PRAGMA cache_size = 5; BEGIN")
    try connection.fill(400)
    try connection.run("UPDATE t SET text = text || 'z'; COMMIT")
    #expect(!place.fileNames.contains("test.db-shm"))
    let killed = try place.afterKill()
    #expect(try killed.query("SELECT count(*) FROM t WHERE text LIKE '%z'") == "400")
  }

  @Test func `a page that is in neither file nor log is an error, not a page of zeros`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    // The row has many pages: zeros for the last one would look like its contents.
    try connection.run(
      """
      PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
      INSERT INTO t VALUES (1, hex(randomblob(50000)));
      PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0;
      CREATE TABLE u (a)
      """)
    let killed = try place.afterKill()
    try killed.change(killed.database) { $0.removeLast(4096) }
    let reader = try killed.connect()
    killed.expectFault(.truncated) { try reader.run("SELECT text FROM t") }
  }
}
