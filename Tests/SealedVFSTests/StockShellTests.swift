import FaultVFS
import Foundation
import SystemPackage
import TestSupport
import Testing

/// A stock SQLite that opens our files must not change them; an earlier version deleted the log.
@Suite(.enabled(if: Program.sqlite3 != nil, "needs the sqlite3 shell (apt install sqlite3)"))
struct StockShellTests {
  private static let statements = [
    "SELECT count(*) FROM sqlite_master;", "PRAGMA integrity_check;", "PRAGMA journal_mode = WAL;",
    "PRAGMA journal_mode = DELETE;", "CREATE TABLE x (a);", "VACUUM;", "PRAGMA wal_checkpoint;",
    ".tables", ".dump", ".recover",
  ]

  private func expectNoChange(_ place: TemporaryDatabase) throws {
    let shell = try #require(Program.sqlite3)
    for statement in Self.statements {
      let before = try place.contents()
      _ = try Program.run(shell, [place.database.string, statement])
      #expect(try place.changes(since: before).isEmpty, "\(statement)")
    }
  }

  @Test func `the stock shell does not change a database with a hot log`() throws {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.fill(100)
    let killed = try place.afterKill()
    try expectNoChange(killed)
    #expect(try killed.query("SELECT count(*) FROM t") == "100")
  }

  @Test func `the stock shell does not change a database with a hot journal`() throws {
    let (place, connection) = try TemporaryDatabase.reopened()
    try connection.run("PRAGMA cache_size = 5; BEGIN; UPDATE t SET text = upper(text) || '!'")
    let killed = try place.afterKill()
    #expect(try killed.bytes(killed.journal).count > 4096)
    try expectNoChange(killed)
    #expect(try killed.query("SELECT count(*) FROM t WHERE text LIKE '%!'") == "0")
    #expect(try killed.query("PRAGMA integrity_check") == "ok")
  }
}
