import Foundation
import GRDB
import ProcessMemory
import SealedSQLite
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// The keys in a process's memory while a database is open, and after it is closed.
@Suite struct KeysInMemoryTests {
  private static let fileID: [UInt8] = Array(0x31...0x38)

  /// Computes the key byte by byte into locked memory, so that there is no copy of it.
  private static func key() -> SecretBytes {
    SecretBytes(byteCount: 32) { target in
      var state: UInt32 = 0x1234_5678
      for index in 0..<32 {
        state = state &* 1_664_525 &+ 1_013_904_223
        target[index] = UInt8(state >> 24)
      }
    }
  }

  private static func derived(_ name: String, byteCount: Int = 32) throws -> [UInt8] {
    try HKDF.sha512(
      inputKey: key(), salt: fileID, info: Array("datavault/\(name)".utf8), byteCount: byteCount
    ).array()
  }

  /// Writes, sorts on disk, fills a temporary table, checkpoints and reads; stores memory images
  /// before and after closing the pool.
  private static func use(_ directory: String) throws {
    var configuration = Configuration()
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA temp_store = FILE")
    }
    let pool = try SealedDatabase.openPool(
      at: FilePath(directory).appending("keys.db"), key: key(), configuration: configuration,
      newFileID: fileID)
    try pool.write { db in
      try db.execute(
        sql: """
          CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO t SELECT i, hex(randomblob(100)) FROM n;
          """)
    }
    try pool.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          PRAGMA temp.cache_size = 2;
          CREATE TEMP TABLE kept AS SELECT * FROM t ORDER BY text;
          """)
    }
    try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    try pool.write { try $0.execute(sql: "UPDATE t SET text = text || '.' WHERE id % 9 = 0") }
    _ = try pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t WHERE text > 'A'") }
    try MemoryImage.write(to: directory + "/open")
    try pool.close()
  }

  @Test func `keys are in memory only while a database is open`() async throws {
    let folder = ScratchFolder()
    let directory = folder.path.string
    defer { withExtendedLifetime(folder) {} }
    await #expect(processExitsWith: .success) { [directory = directory as String] in
      try KeysInMemoryTests.use(directory)
      try MemoryImage.write(to: directory + "/closed")
    }
    let open = try MemoryImage(readingFrom: directory + "/open")
    let closed = try MemoryImage(readingFrom: directory + "/closed")

    // The control: the search must find the keys while the database is open.
    let databaseKey = Self.key().array()
    #expect(open.contains(databaseKey))
    let frameHeader = try Self.derived("wal-header", byteCount: 64)
    var keys: Set = [
      databaseKey, try Self.derived("page"), try Self.derived("journal"),
      Array(frameHeader[..<32]), Array(frameHeader[32...]),
    ]
    let expanded = open.expandedKeys()
    // Without AES instructions OpenSSL stores key schedules in another form, which is not searched.
    let cpu = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    if cpu.contains(" aes ") {
      #expect(expanded.isSuperset(of: keys.subtracting([databaseKey])))
      // The other keys are those that XAES derived, for pages and for the temporary table.
      #expect(expanded.count > 5)
    }
    keys.formUnion(expanded)

    #expect(closed.byteCount > 0)
    #expect(closed.expandedKeys().isEmpty)
    for key in keys { #expect(!closed.contains(key)) }
    print("keys in memory: open \(keys.count), closed 0 of \(closed.byteCount) bytes")
  }
}
