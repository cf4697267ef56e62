import GRDB
import SealedSQLite
import TestSupport
import Testing

/// In an auto-vacuum database SQLite moves a page to make room for the root of a new table.
@Suite struct MovedRootTests {
  @Test(arguments: [false, true], [100, 9000, 40_000])
  func `CREATE TABLE moves pages that the same transaction wrote`(
    isInLogMode: Bool, byteCount: Int
  ) throws {
    let directory = ScratchFolder()
    let pool = try SealedDatabase.openPool(
      at: directory("x.db"), key: testKey(),
      creation: .ifAbsent(autoVacuum: .incremental))
    try pool.writeWithoutTransaction { db in
      if !isInLogMode { try db.execute(sql: "PRAGMA journal_mode = DELETE") }
      try db.execute(sql: "CREATE TABLE a (id INTEGER PRIMARY KEY, b BLOB)")
      for name in ["b", "c", "d"] {
        try db.inTransaction {
          try db.execute(
            sql: """
              INSERT INTO a (b) VALUES (zeroblob(\(byteCount)));
              CREATE TABLE \(name) (x UNIQUE);
              INSERT INTO \(name) VALUES (zeroblob(\(byteCount)));
              """)
          return .commit
        }
      }
      #expect(try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok")
      #expect(try Int.fetchOne(db, sql: "SELECT sum(length(b)) FROM a") == 3 * byteCount)
      #expect(try Int.fetchOne(db, sql: "SELECT length(x) FROM d") == byteCount)
    }
  }
}
