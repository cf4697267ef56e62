import FaultVFS
import Glibc
import SealedVFS
import SystemPackage
import Testing

/// The rollback journal: restoring from a hot one, and damage to it.
@Suite struct JournalTests {
  /// The files after a kill in a transaction that has changed the database already.
  private func killedTransaction(pragmas: String = "") throws -> (TemporaryDatabase, [String]) {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 600)
    let rows = try connection.run("SELECT text FROM t ORDER BY id")
    try connection.run("\(pragmas); PRAGMA cache_size = 5; BEGIN")
    try connection.run("UPDATE t SET text = replace(text, 'canary', 'secret') WHERE id % 3 = 0")
    try connection.run("UPDATE t SET text = text || '!' WHERE id % 5 = 0")
    return (try place.afterKill(), rows)
  }

  @Test(arguments: [
    "PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA journal_mode = PERSIST", "PRAGMA synchronous = NORMAL", "PRAGMA synchronous = EXTRA",
    "PRAGMA synchronous = OFF",
  ])
  func `a hot journal restores every row`(pragmas: String) throws {
    let (killed, rows) = try killedTransaction(pragmas: pragmas)
    let journal = try killed.bytes(killed.journal)
    #expect(journal.count > 3 * 4104)
    #expect(journal[0] == 0)
    let connection = try killed.connect()
    let restored = try connection.run("SELECT text FROM t ORDER BY id")
    let isSame = restored == rows
    #expect(isSame)
    #expect(try connection.integrity == "ok")
  }

  @Test(arguments: ["DELETE", "TRUNCATE", "PERSIST"])
  func `commits, rollbacks and savepoints work in every journal mode`(mode: String) throws {
    let place = TemporaryDatabase()
    let connection = try place.connect()
    try connection.run("PRAGMA journal_mode = \(mode); PRAGMA cache_size = 5")
    try connection.fill(300)
    for round in 0..<3 {
      try connection.run("BEGIN; UPDATE t SET text = text || 'a\(round)'; SAVEPOINT s")
      try connection.run("DELETE FROM t WHERE id % 2 = 0; UPDATE t SET text = 'gone'")
      try connection.run("ROLLBACK TO s; COMMIT")
      try connection.run("BEGIN; DELETE FROM t; ROLLBACK")
    }
    #expect(try connection.first("SELECT count(*) FROM t WHERE text LIKE '%a0a1a2'") == "300")
    #expect(try connection.integrity == "ok")
  }

  @Test func `a journal contains neither plaintext nor SQLite's checksums`() throws {
    let (killed, _) = try killedTransaction()
    let journal = try killed.bytes(killed.journal)
    #expect(!journal.contains(text: "canary") && !journal.contains(text: "secret"))
    #expect(!journal.contains(text: "SQLite format 3"))
    // Page number, page, and in place of a checksum a mark that is the same in the whole segment.
    let marks = (0..<2).map { Array(journal[512 + $0 * 4104 + 4100..<512 + $0 * 4104 + 4104]) }
    #expect(marks[0] == marks[1])
    // SQLite's header words, such as the checksum seed, are sealed: the sector size 512 is not
    // visible.
    #expect(Array(journal[20..<28]) != [0, 0, 2, 0, 0, 0, 16, 0])
  }

  @Test(arguments: [600, 4200, 5000, 20, 40, 60])
  func `a damaged hot journal is an error, and the journal is kept unchanged`(offset: Int) throws {
    let (killed, _) = try killedTransaction()
    try killed.change(killed.journal) { $0[offset] ^= 4 }
    let before = try killed.contents()
    killed.expectFault(.damagedJournal) { try killed.connect().run("SELECT * FROM t") }
    // Records before the damaged one can have been written back; the journal must still exist.
    #expect(killed.exists(killed.journal))
    let isKept = try killed.bytes(killed.journal) == before["test.db-journal"]
    #expect(isKept)
  }

  @Test func `records that were never synchronized end a journal without an error`() throws {
    // The power cut came before SQLite changed the database: the journal's tail is torn.
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 600)
    let rows = try connection.run("SELECT text FROM t ORDER BY id")
    try connection.run("PRAGMA synchronous = OFF; PRAGMA cache_size = 2000; BEGIN")
    try connection.run("UPDATE t SET text = text || '!'")
    let killed = try place.afterKill()
    let last = try killed.bytes(killed.journal).count - 4104
    try killed.change(killed.journal) { $0[last + 2000] ^= 1 }
    let restored = try killed.connect().run("SELECT text FROM t ORDER BY id")
    let isSame = restored == rows
    #expect(isSame)
  }

  @Test func `a plain journal beside the database is refused and not changed`() throws {
    let (place, plain) = (TemporaryDatabase(), TemporaryDatabase())
    try place.makeDatabase()
    let connection = try plain.open()
    try connection.fill(600)
    try connection.run("PRAGMA cache_size = 5; BEGIN; UPDATE t SET text = 'x' || text")
    try place.write(try plain.afterKill().bytes(plain.journal), to: place.journal)
    let before = try place.contents()
    place.expectFault(.unrelatedCompanionFile) { try place.connect().run("SELECT * FROM t") }
    #expect(try place.changes(since: before).isEmpty)
  }

  @Test(arguments: [true, false])
  func `a transaction over two sealed databases is atomic`(isCommitted: Bool) throws {
    let (first, second) = (TemporaryDatabase(), TemporaryDatabase())
    try first.makeDatabase()
    try second.makeDatabase()
    try second.register()
    let connection = try first.connect()
    try connection.run("ATTACH '\(second.database)' AS s; PRAGMA cache_size = 5; BEGIN")
    try connection.run("UPDATE main.t SET text = text || '!'; UPDATE s.t SET text = text || '!'")
    if isCommitted {
      try connection.run("COMMIT")
      #expect(try first.query("SELECT count(*) FROM t WHERE text LIKE '%!'") == "300")
      #expect(try second.query("SELECT count(*) FROM t WHERE text LIKE '%!'") == "300")
    } else {
      let killed = (try first.afterKill(), try second.afterKill())
      #expect(try killed.0.query("SELECT count(*) FROM t WHERE text LIKE '%!'") == "0")
      #expect(try killed.1.query("SELECT count(*) FROM t WHERE text LIKE '%!'") == "0")
    }
  }

  @Test func `VACUUM rewrites a database and leaves no plaintext`() throws {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 900)
    try connection.run("DELETE FROM t WHERE id > 100; VACUUM")
    #expect(try connection.rowCount == "100")
    #expect(try connection.integrity == "ok")
    connection.close()
    let bytes = try place.bytes(place.database)
    #expect(bytes.count < 20 * 4096 && !bytes.contains(text: "canary"))
  }

  @Test func `an idle connection to a replaced file neither reads it nor rolls back into it`()
    throws
  {
    let (place, other) = (TemporaryDatabase(), TemporaryDatabase())
    try place.makeDatabase()
    let idle = try place.connect()
    #expect(try idle.rowCount == "300")
    try other.makeDatabase(rowCount: 5)
    #expect(rename(other.database.string, place.database.string) == 0)
    #expect(throws: SQLFailure.self) { try idle.rowCount }
    place.expectFault(.fileReplaced) { try idle.run("DELETE FROM t") }
  }

  @Test(arguments: ["PRAGMA journal_mode = WAL", "DELETE FROM t WHERE id = 1"])
  func `a connection that kept its lock writes no log or journal for a replaced file`(
    statement: String
  ) throws {
    let (place, other) = (TemporaryDatabase(), TemporaryDatabase())
    try place.makeDatabase()
    try other.makeDatabase(rowCount: 5)
    let idle = try place.connect()
    try idle.run("PRAGMA locking_mode = EXCLUSIVE")
    #expect(try idle.rowCount == "300")
    #expect(rename(other.database.string, place.database.string) == 0)
    #expect(throws: SQLFailure.self) {
      try idle.run(statement)
      try idle.run("DELETE FROM t WHERE id = 1")
    }
    #expect(place.fileNames == ["test.db"])
    idle.close()
    #expect(try place.query("SELECT count(*) FROM t") == "5")
  }
}
