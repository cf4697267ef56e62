import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// Several processes with one file, and processes that are killed.
@Suite struct ProcessTests {
  /// Inserts rows, each in its own commit; runs in a separate process.
  private static func insert(_ path: String, from first: Int, count: Int) throws {
    let registration = try SealedVFS.register(key: TemporaryDatabase.key(), at: FilePath(path))
    let connection = try SQLConnection(path)
    sqlite3_busy_timeout(connection.pointer, 20_000)
    for id in first..<first + count {
      try connection.run("INSERT INTO t VALUES (\(id), 'canary \(id)')")
    }
    withExtendedLifetime(registration) {}
  }

  @Test(arguments: ["WAL", "DELETE"])
  func `two processes read each other's commits`(mode: String) async throws {
    let (place, connection) = try TemporaryDatabase.connected()
    sqlite3_busy_timeout(connection.pointer, 20_000)
    try connection.run(
      "PRAGMA journal_mode = \(mode); CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    try connection.run("INSERT INTO t VALUES (1, 'canary')")
    let path = place.database.string
    await #expect(processExitsWith: .success) { [path = path as String] in
      try ProcessTests.insert(path, from: 100, count: 50)
    }
    #expect(try connection.rowCount == "51")
    try connection.run("UPDATE t SET text = text || '!'")
    async let other = #expect(processExitsWith: .success) { [path = path as String] in
      try ProcessTests.insert(path, from: 200, count: 50)
    }
    for id in 300..<350 { try connection.run("INSERT INTO t VALUES (\(id), 'canary')") }
    _ = await other
    #expect(try connection.rowCount == "151")
    #expect(try connection.integrity == "ok")
  }

  @Test(arguments: ["WAL", "DELETE"])
  func `a killed process leaves exactly its committed rows`(mode: String) async throws {
    let place = TemporaryDatabase()
    try place.connect().run(
      "PRAGMA journal_mode = \(mode); CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    let path = place.database.string
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      try ProcessTests.insert(path, from: 1, count: 30)
      let registration = try SealedVFS.register(key: TemporaryDatabase.key(), at: FilePath(path))
      let connection = try SQLConnection(path)
      try connection.run("PRAGMA cache_size = 5; BEGIN")
      try connection.run(
        """
        WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, hex(zeroblob(100)) FROM n;
        UPDATE t SET text = 'lost';
        """)
      kill(getpid(), SIGKILL)
      withExtendedLifetime(registration) {}
    }
    #expect(place.exists(mode == "WAL" ? place.log : place.journal))
    for (name, bytes) in try place.contents() where !name.hasSuffix("-shm") {
      #expect(!bytes.contains(text: "canary") && !bytes.contains(text: "CREATE TABLE"), "\(name)")
    }
    let connection = try place.connect()
    #expect(try connection.rowCount == "30")
    #expect(try connection.first("SELECT count(*) FROM t WHERE text LIKE 'canary %'") == "30")
    #expect(try connection.integrity == "ok")
  }
}
