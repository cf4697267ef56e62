import FaultVFS
import FileRecording
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing

/// Explains GRDB's errors by the fault that SQLite reported by the same code on the same
/// connection.
@Suite struct ExplainingTests {
  private let directory = ScratchFolder()
  private var path: FilePath { directory("test.db") }

  /// A closed database whose table `t` has 2,000 rows, with two damaged pages in it.
  private func makeDamagedDatabase() throws {
    let pool = try SealedDatabase.openPool(at: path, key: testKey())
    try pool.write { db in
      try db.execute(
        sql: """
          CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO t SELECT i, hex(zeroblob(100)) FROM n;
          """)
    }
    try pool.close()
    var bytes = try directory.bytes("test.db")
    for page in [8, 40] { bytes[4096 * (page - 1) + 500] ^= 1 }
    try directory.file("test.db", bytes)
  }

  private func error(_ body: () throws -> Void) throws -> DatabaseError {
    try #require(#expect(throws: DatabaseError.self) { try body() })
  }

  @Test func `a connection's error names its own damaged page, a pool's the newest one`() throws {
    try makeDamagedDatabase()
    let pool = try SealedDatabase.openPool(at: path, key: testKey())
    try pool.unsafeRead { reader in
      let first = try error { try reader.execute(sql: "SELECT sum(length(text)) FROM t") }
      try pool.writeWithoutTransaction { writer in
        let last = try error {
          try writer.execute(sql: "SELECT text FROM t ORDER BY id DESC LIMIT 1900")
        }
        let reasons = [
          SealedDatabaseError(explaining: first, on: reader),
          SealedDatabaseError(explaining: last, on: writer),
          SealedDatabaseError(explaining: last, in: pool),
        ]
        #expect(reasons.map(\.code) == [.damagedPage, .damagedPage, .damagedPage])
        #expect(reasons.map(\.pageNumber) == [8, 40, 40])
      }
    }
    try pool.close()
  }

  @Test func `an earlier fault does not explain a different failure`() throws {
    try makeDamagedDatabase()
    let pool = try SealedDatabase.openPool(at: path, key: testKey())
    let other = try SealedDatabase.openPool(at: path, key: testKey())
    let damage = try error {
      try pool.read { try $0.execute(sql: "SELECT sum(length(text)) FROM t") }
    }
    #expect(SealedDatabaseError(explaining: damage, in: pool).code == .damagedPage)
    #expect(SealedDatabaseError(explaining: damage, in: other).pageNumber == nil)
    let conflict = try error {
      try pool.write { try $0.execute(sql: "INSERT INTO t (id) VALUES (1)") }
    }
    #expect(SealedDatabaseError(explaining: conflict, in: pool).code == .sqlite)
    let disk = DatabaseError(resultCode: .SQLITE_IOERR_READ)
    #expect(SealedDatabaseError(explaining: disk, in: pool).code == .inputOutput)
    try pool.close()
    try other.close()
  }

  @Test func `a full disk during a write is reported as such, not as damage`() throws {
    try SealedDatabase.openPool(at: path, key: testKey()).close()
    for (errno, code) in [
      (Errno.noSpace, SealedDatabaseError.Code.diskFull), (.ioError, .inputOutput),
    ] {
      let quiet = FileRecorder()
      let opened = try SealedDatabase.openPool(
        at: path, key: testKey(), over: RecordingVFS(quiet).name)
      let count = quiet.failableEventCount
      try opened.close()
      let recorder = FileRecorder(fault: .failure(atEvent: count, errno))
      let pool = try SealedDatabase.openPool(
        at: path, key: testKey(), over: RecordingVFS(recorder).name)
      let failure = try error {
        try pool.write { try $0.execute(sql: "CREATE TABLE u\(count) (a)") }
      }
      #expect(SealedDatabaseError(explaining: failure, in: pool).code == code)
      try pool.close()
    }
  }
}
