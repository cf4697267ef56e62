import CSQLite
import FaultVFS
import SealedVFS
import Testing

/// A sealed database has pages of 4096 bytes, whatever SQLite is asked for.
@Suite struct PageSizeTests {
  private static let sizes = [512, 1024, 2048, 8192, 65536]

  @Test(arguments: sizes)
  func `PRAGMA page_size and VACUUM leave a database as it was`(size: Int) throws {
    for mode in ["DELETE", "WAL"] {
      let (place, connection) = try TemporaryDatabase.reopened(mode: mode)
      try connection.run("PRAGMA page_size = \(size); PRAGMA journal_mode = DELETE; VACUUM")
      #expect(try connection.first("PRAGMA page_size") == "4096")
      #expect(try connection.integrity == "ok")
      connection.close()
      #expect(try place.query("SELECT count(*) FROM t") == "300")
    }
  }

  @Test(arguments: sizes, [true, false])
  func `PRAGMA page_size is ignored for a new database`(size: Int, setsReserve: Bool) throws {
    let place = TemporaryDatabase()
    let connection = try place.connect(setsReserve: setsReserve)
    if setsReserve { #expect(SealedConnection.reserveBytes(of: connection.pointer) == 40) }
    try connection.run("PRAGMA page_size = \(size)")
    try connection.fill(20)
    #expect(try connection.first("PRAGMA page_size") == "4096")
  }

  @Test(arguments: sizes)
  func `a page size for another database of the connection fails a VACUUM with the reason`(
    size: Int
  ) throws {
    let place = try TemporaryDatabase.made()
    try place.register()
    let connection = try SQLConnection(":memory:")
    try connection.run("ATTACH '\(place.database)' AS s; PRAGMA main.page_size = \(size)")
    place.expectFault(.otherPageSize) { try connection.run("VACUUM s") }
    #expect(try connection.first("SELECT count(*) FROM s.t") == "300")
    try connection.run("PRAGMA main.page_size = 4096; VACUUM s")
    #expect(try connection.first("PRAGMA s.integrity_check") == "ok")
  }

  @Test(arguments: sizes + [4096], [0, 1])
  func `a backup of a database with other pages is refused, or leaves a whole database`(
    size: Int, tableCount: Int
  ) throws {
    for setsReserve in [true, false] {
      let place = TemporaryDatabase()
      let target = try place.connect(setsReserve: setsReserve)
      if setsReserve { _ = SealedConnection.reserveBytes(of: target.pointer) }
      let source = try SQLConnection(":memory:")
      try source.run("PRAGMA page_size = \(size)")
      if tableCount > 0 { try source.run("CREATE TABLE t (x); INSERT INTO t VALUES (1)") }
      let backup = try #require(
        sqlite3_backup_init(target.pointer, "main", source.pointer, "main"))
      let step = sqlite3_backup_step(backup, -1)
      let result = sqlite3_backup_finish(backup)
      #expect(tableCount == 0 || step != SQLITE_DONE)
      target.close()
      #expect(try place.query("PRAGMA integrity_check") == "ok", "\(step), \(result)")
      if step == SQLITE_DONE { #expect(try place.bytes(place.database).count % 4096 == 0) }
    }
  }
}
