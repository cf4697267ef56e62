import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import TestSupport
import Testing

/// Databases larger than 1 GiB, where SQLite has its lock bytes, and larger than 4 GiB.
@Suite(.serialized) struct LargeFileTests {
  private static let gibibyte = 1 << 30
  private static let lockPageOffset = 0x4000_0000

  /// The free space for the temporary directory, in bytes.
  private static var freeByteCount: Int {
    let attributes = try? FileManager.default.attributesOfFileSystem(
      forPath: NSTemporaryDirectory())
    return (attributes?[.systemFreeSize] as? NSNumber)?.intValue ?? 0
  }

  /// Inserts rows of a megabyte into `b` until the file has `byteCount` bytes, and then small rows.
  private func makeDatabase(_ place: TemporaryDatabase, byteCount: Int) throws -> Int {
    let connection = try place.open()
    // A journal would double the bytes written, and this step is never killed.
    try connection.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    try connection.run("CREATE TABLE b (id INTEGER PRIMARY KEY, zeros BLOB)")
    let rowCount = byteCount / 1_010_000 + 1
    try connection.run(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rowCount))
      INSERT INTO b SELECT i, zeroblob(1000000) FROM n
      """)
    try connection.fill(500)
    return rowCount
  }

  private func page(_ place: TemporaryDatabase, at offset: Int) throws -> [UInt8] {
    let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: place.database.string))
    defer { try? handle.close() }
    try handle.seek(toOffset: UInt64(offset))
    return [UInt8](try #require(try handle.read(upToCount: 4096)))
  }

  private func work(on place: TemporaryDatabase, past byteCount: Int, rowCount: Int) throws {
    // The rows around 1 GiB, byte for byte, and those at the end.
    #expect(
      try place.query(
        "SELECT count(*) FROM b WHERE id BETWEEN 1030 AND 1072 AND zeros = zeroblob(1000000)")
        == "\(min(43, rowCount - 1029))")
    #expect(
      try place.query(
        "SELECT count(*) FROM b WHERE id > \(rowCount - 20) AND zeros = zeroblob(1000000)") == "20")
    #expect(try place.query("SELECT count(*) FROM t WHERE text LIKE 'canary %'") == "500")
    for mode in ["DELETE", "WAL"] {
      let connection = try place.open()
      try connection.run("PRAGMA journal_mode = \(mode); PRAGMA cache_size = 10")
      try connection.run(
        "BEGIN; UPDATE t SET text = 'gone'; DELETE FROM b WHERE id BETWEEN 1055 AND 1075; ROLLBACK")
      try connection.run("UPDATE t SET text = text || ' \(mode)'")
      if mode == "WAL" { try connection.run("PRAGMA wal_checkpoint(TRUNCATE)") }
      connection.close()
      #expect(try place.query("SELECT count(*) FROM t WHERE text LIKE '% \(mode)'") == "500")
    }
    #expect(try place.query("SELECT count(*) FROM b") == "\(rowCount)")
    #expect(try place.query("PRAGMA quick_check(1)") == "ok")
    let isHole = try page(place, at: Self.lockPageOffset).allSatisfy { $0 == 0 }
    #expect(isHole)
    for offset in [Self.lockPageOffset - 4096, Self.lockPageOffset + 4096, byteCount] {
      let isSealed = try page(place, at: offset).suffix(40).contains { $0 != 0 }
      #expect(isSealed, "page at \(offset)")
    }
  }

  /// Verifies the whole database, and again with one page damaged; prints the time that it took.
  private func verify(_ place: TemporaryDatabase, damagedAt offset: Int) throws {
    let start = ContinuousClock.now
    let whole = try place.verify()
    print("verified \(whole.pageCount) pages and their contents in \(ContinuousClock.now - start)")
    #expect(whole.isClean && whole.contentCheck == .done)
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: place.database.string))
    defer { try? handle.close() }
    try handle.seek(toOffset: UInt64(offset + 4095))
    let byte = try #require(try handle.read(upToCount: 1)?.first)
    try handle.seek(toOffset: UInt64(offset + 4095))
    try handle.write(contentsOf: [byte ^ 1])
    let found = try place.verify()
    #expect(found.damagedPages == [UInt32(offset / 4096 + 1)] && found.damagedPageCount == 1)
    #expect(found.contentCheck == .notPossible && !found.isClean)
  }

  @Test(
    .enabled(if: Exhaustive.isRequested, "takes a minute and 1 GiB: set DATAVAULT_EXHAUSTIVE=1"),
    .enabled("less than 4 GiB are free where temporary files go") {
      Self.freeByteCount >= 4 * Self.gibibyte
    })
  func `a database past the lock bytes at 1 GiB is written, rolled back and read`() throws {
    let place = TemporaryDatabase()
    try place.register()
    let rowCount = try makeDatabase(place, byteCount: Self.gibibyte + (20 << 20))
    try work(on: place, past: Self.gibibyte + (4 << 20), rowCount: rowCount)
  }

  @Test(
    .enabled(if: Exhaustive.isRequested, "takes minutes and 5 GiB: set DATAVAULT_EXHAUSTIVE=1"))
  func `a database past 4 GiB is written, rolled back and read`() throws {
    let place = TemporaryDatabase()
    try place.register()
    let rowCount = try makeDatabase(place, byteCount: 4 * Self.gibibyte + (40 << 20))
    try work(on: place, past: 4 * Self.gibibyte + (4 << 20), rowCount: rowCount)
    try verify(place, damagedAt: 4 * Self.gibibyte + (8 << 20))
  }
}
