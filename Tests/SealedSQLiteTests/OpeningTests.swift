import Foundation
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@Suite struct OpeningTests {
  private let directory = ScratchFolder()
  private var path: FilePath { directory("test.db") }

  private func makeDatabase(_ path: FilePath, rowCount: Int = 500) throws {
    let pool = try SealedDatabase.openPool(at: path, key: testKey())
    try pool.write { db in
      try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
      for index in 0..<rowCount {
        try db.execute(
          sql: "INSERT INTO t (text) VALUES (?)", arguments: ["canary-canary \(index)"])
      }
    }
    try pool.close()
  }

  private func open(
    _ path: FilePath, key byte: UInt8 = 7, creation: SealedDatabase.Creation = .ifAbsent
  ) throws(SealedDatabaseError) -> DatabasePool {
    try SealedDatabase.openPool(at: path, key: testKey(byte), creation: creation)
  }

  @Test func `rows written through an unmodified pool are present after reopening`() throws {
    try makeDatabase(path)
    let pool = try open(path, creation: .never)
    #expect(try pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 500)
    #expect(try pool.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    try pool.close()
  }

  @Test func `sealed files contain no plaintext rows, but plain files contain them`() throws {
    let pool = try open(directory("sealed.db"))
    let plain = try DatabasePool(path: directory("plain.db").string)
    for database in [pool, plain] {
      try database.write { db in
        try db.execute(
          sql: """
            PRAGMA cache_size = 10;
            CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
              INSERT INTO t SELECT i, 'canary ' || i FROM n;
            UPDATE t SET text = text || ' again' WHERE id % 2 = 0;
            CREATE INDEX i ON t (text DESC);
            """)
      }
    }
    func found(_ prefix: String) throws -> Int {
      try directory.names().filter { $0.hasPrefix(prefix) && !$0.hasSuffix("-shm") }
        .filter { name in
          // Another process reads the file: a close in this one would release SQLite's locks on
          // it.
          let pattern = "canary|CREATE TABLE|SQLite format"
          let file = directory(name).string
          return try Program.run("/bin/grep", ["-q", "-a", "-E", pattern, file]).status == 0
        }.count
    }
    #expect(try found("sealed") == 0)
    #expect(try found("plain") == 2)
    try pool.close()
    #expect(try found("sealed") == 0)
  }

  @Test func `an opening reports each kind of unsuitable file, and does not change it`() throws {
    func expect(
      _ code: SealedDatabaseError.Code, key byte: UInt8 = 7, _ comment: Comment? = nil
    ) throws {
      let before = try? directory.bytes("test.db")
      let failure = #expect(throws: SealedDatabaseError.self) {
        let pool = try open(path, key: byte, creation: .never)
        try pool.close()
      }
      #expect(failure?.code == code, comment)
      #expect(failure?.message.contains(path.string) == true)
      let isSame = before == (try? directory.bytes("test.db"))
      #expect(isSame)
    }
    try expect(.notFound)
    #expect(!FileManager.default.fileExists(atPath: path.string))
    try makeDatabase(path)
    try expect(.wrongKey, key: 8)
    let sealed = try directory.bytes("test.db")
    func replace(_ body: (inout [UInt8]) -> Void) throws {
      var changed = sealed
      body(&changed)
      try directory.file("test.db", changed)
    }
    try replace { $0[3] = 9 }
    try expect(.newerVersion)
    try replace { $0[0] = 0 }
    try expect(.notSealed)
    try replace { $0[700] ^= 1 }
    try expect(.damagedPage)
    try replace { $0.removeLast(8192) }
    try expect(.truncated)
    try replace { $0.replaceSubrange(0..<16, with: "SQLite format 3\0".utf8) }
    try expect(.plainDatabase)
    try replace { _ in }
    try open(path, creation: .never).close()
  }

  @Test func `reading a damaged page is an error, never a wrong row`() throws {
    try makeDatabase(path, rowCount: 2000)
    var bytes = try directory.bytes("test.db")
    bytes[4096 * 8 + 1000] ^= 1
    try directory.file("test.db", bytes)
    let pool = try open(path)
    #expect(throws: DatabaseError.self) {
      try pool.read { try Row.fetchAll($0, sql: "SELECT * FROM t") }
    }
    try pool.close()
  }

  @Test func `creation can choose incremental auto-vacuum`() throws {
    let pool = try SealedDatabase.openPool(
      at: path, key: testKey(), creation: .ifAbsent(autoVacuum: .incremental))
    try pool.write { try $0.execute(sql: "CREATE TABLE t (a)") }
    #expect(try pool.read { try Int.fetchOne($0, sql: "PRAGMA auto_vacuum") } == 2)
    try pool.close()
  }

  @Test func `opening a pool beside a writer commits nothing and does not wait`() throws {
    try makeDatabase(path, rowCount: 3)
    let first = try open(path)
    try first.write { try $0.execute(sql: "DELETE FROM t WHERE id = 1") }
    try first.writeWithoutTransaction { db in
      try db.execute(sql: "BEGIN IMMEDIATE")
      let second = try SealedDatabase.openPool(
        at: path, key: testKey(), creation: .ifAbsent(autoVacuum: .incremental))
      #expect(try second.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 2)
      try second.close()
      try db.execute(sql: "ROLLBACK")
    }
    try first.close()
  }

  @Test func `openReader() does not write`() throws {
    try makeDatabase(path, rowCount: 4)
    let before = try directory.bytes("test.db")
    let reader = try SealedDatabase.openReader(at: path, key: testKey())
    #expect(try reader.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 4)
    try reader.close()
    let isSame = try directory.bytes("test.db") == before
    #expect(isSame)
  }

  @Test func `a pool's readers run concurrently with its writer`() async throws {
    let pool = try open(path)
    try await pool.write { try $0.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for index in 0..<150 {
          try await pool.write { db in
            try db.execute(
              sql: "INSERT INTO t (a, b) VALUES (?, ?)",
              arguments: [index, String(repeating: "x", count: 2000 + index)])
          }
        }
      }
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<60 {
            let wrong = try await pool.read {
              try Int.fetchOne($0, sql: "SELECT count(*) FROM t WHERE length(b) <> 2000 + a")
            }
            #expect(wrong == 0)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 150)
    try pool.close()
  }
}
