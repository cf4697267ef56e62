import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// The 16 clear bytes before page 1 in log and journal, which are not authenticated there.
@Suite struct PageOneHeaderTests {
  /// A database killed with several copies of page 1 in its log.
  private func killedInLogMode() throws -> TemporaryDatabase {
    try .killed { connection in
      for name in ["a", "b", "c"] { try connection.run("CREATE TABLE \(name) (x)") }
    }
  }

  @Test(arguments: 0..<16)
  func `a checkpoint writes the file's own header, not the one in a frame of page 1`(
    byte: Int
  ) throws {
    let place = try killedInLogMode()
    let header = try place.bytes(place.database)[..<16]
    let frames = try place.frames(of: 1)
    #expect(frames.count >= 3)
    try place.change(place.log) { log in
      for frame in frames { log[32 + (frame - 1) * 4120 + 24 + byte] ^= 0x10 }
    }
    let found = try place.verify()
    #expect(found.log.changedHeaderFrames == frames)
    #expect(found.isClean && found.log.committedFrameCount == found.log.frameCount)
    if ReferenceDatabaseReader.isAvailable {
      #expect(try ReferenceDatabaseReader.rowCount(of: place) == "60")
    }

    let connection = try place.connect()
    try connection.run("INSERT INTO a VALUES (1); PRAGMA wal_checkpoint(TRUNCATE)")
    #expect(try connection.rowCount == "60")
    connection.close()
    #expect(try place.bytes(place.database)[..<16] == header)
    let after = try place.verify()
    #expect(after.isClean && after.log.changedHeaderFrames.isEmpty)
    #expect(try place.query("SELECT count(*) FROM a") == "1")
  }

  @Test func `a rollback writes the file's own header, not the one in the journal's record`()
    throws
  {
    let (written, connection) = try TemporaryDatabase.connected()
    try connection.fill(300)
    try connection.run(
      "PRAGMA cache_size = 1; BEGIN; CREATE TABLE more (x); UPDATE t SET text = text || '!'")
    let place = try written.afterKill()
    let header = try place.bytes(place.database)[..<16]
    let journal = try place.bytes(place.journal)
    let record = try #require(
      stride(from: 512, to: journal.count - 4103, by: 4104).first { offset in
        Array(journal[offset..<offset + 4]) == [0, 0, 0, 1]
      })
    try place.change(place.journal) { $0[record + 4 + 9] ^= 0x10 }
    let found = try place.verify()
    #expect(found.journal.changedHeaderRecords == [(record - 512) / 4104 + 1] && found.isClean)
    #expect(try place.query("SELECT count(*) FROM t WHERE text LIKE '%!'") == "0")
    #expect(!place.exists(place.journal))
    #expect(try place.bytes(place.database)[..<16] == header)
    #expect(try place.verify().isClean)
  }

  static let garbage: [[UInt8]] = [
    Array(repeating: 0, count: 16), Array("something else..".utf8),
  ]

  @Test(arguments: garbage, ["WAL", "DELETE", "TRUNCATE", "PERSIST"])
  func `a log or hot journal restores an overwritten header, but only under its own key`(
    bytes: [UInt8], mode: String
  ) throws {
    let (written, connection) = try TemporaryDatabase.reopened(rowCount: 300, mode: mode)
    try connection.run("PRAGMA cache_size = 3; PRAGMA wal_autocheckpoint = 0")
    if mode == "WAL" {
      try connection.run("CREATE TABLE more (x)")
    } else {
      // Page 1 is not in the first segment of the journal.
      try connection.run("BEGIN; UPDATE t SET text = text || '!'; CREATE TABLE more (x)")
      try connection.run("UPDATE t SET text = text || '!'")
    }
    let place = try written.afterKill()
    let header = try place.bytes(place.database)[..<16]
    try place.overwrite(place.database) { $0.replaceSubrange(0..<16, with: bytes) }
    let before = try place.contents()

    #expect(throws: SQLFailure.self) {
      try place.connect(TemporaryDatabase.otherKeyBytes).run("SELECT * FROM t")
    }
    #expect([.notSealed, .wrongKey].contains(place.fault?.code))
    #expect(try place.changes(since: before).isEmpty)
    let other = try place.afterKill()
    try FileManager.default.removeItem(atPath: (mode == "WAL" ? other.log : other.journal).string)
    #expect(throws: SQLFailure.self) { try other.connect().run("SELECT * FROM t") }

    try SealedVFS.require(key: TemporaryDatabase.key(), at: place.database)
    let reopened = try place.connect()
    #expect(try reopened.first("SELECT count(*) FROM t WHERE text LIKE 'canary%'") == "300")
    #expect(try reopened.first("SELECT count(*) FROM t WHERE text LIKE '%!'") == "0")
    try reopened.run("UPDATE t SET text = 'x' WHERE id = 1; PRAGMA wal_checkpoint(TRUNCATE)")
    #expect(try reopened.integrity == "ok")
    reopened.close()
    #expect(try place.bytes(place.database)[..<16] == header)
    #expect(try place.verify().isClean)
  }

  @Test(
    arguments: [[], Array(repeating: 0xA5, count: 16), Array(repeating: 0xA5, count: 8192)]
      as [[UInt8]])
  func `rolling back the hot journal of a first transaction empties a garbage database`(
    bytes: [UInt8]
  ) throws {
    let (written, connection) = try TemporaryDatabase.connected()
    try connection.run("PRAGMA cache_size = 1; BEGIN")
    try connection.fill(100)
    let place = try written.afterKill()
    try place.change(place.journal) { $0.removeSubrange(512...) }
    try place.write(bytes, to: place.database)
    let reopened = try place.connect()
    try reopened.fill(3)
    #expect(try reopened.rowCount == "3")
    #expect(try reopened.integrity == "ok")
  }

  @Test func `a header copy that predates a key change does not identify the database`() throws {
    let place = try killedInLogMode()
    let log = try place.bytes(place.log)
    _ = try place.query("PRAGMA wal_checkpoint(TRUNCATE)")
    try place.changeKey()
    try place.write(log, to: place.log)
    let before = try place.contents()
    #expect(throws: SQLFailure.self) { try place.connect().run("SELECT count(*) FROM t") }
    #expect(place.fault?.code == .wrongKey)
    #expect(try place.changes(since: before).isEmpty)
  }

  @Test(arguments: ["WAL", "DELETE"], [true, false])
  func
    `a file that took the place of a database is not overwritten by the log or journal of that one`(
      mode: String, isSealed: Bool
    ) throws
  {
    let (written, connection) = try TemporaryDatabase.reopened(rowCount: 300, mode: mode)
    try connection.run("PRAGMA cache_size = 3; PRAGMA wal_autocheckpoint = 0; BEGIN")
    try connection.run("UPDATE t SET text = text || '!' WHERE id > 150; CREATE TABLE more (x)")
    if mode == "WAL" { try connection.run("COMMIT") }
    let place = try written.afterKill()
    let other = TemporaryDatabase()
    try other.withConnection(TemporaryDatabase.otherKeyBytes) { try $0.fill(600) }
    let bytes =
      isSealed
      ? try other.bytes(other.database) : (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 77) }
    try place.write(bytes, to: place.database)
    let before = try place.contents()
    #expect(throws: SQLFailure.self) { try place.connect().run("SELECT count(*) FROM t") }
    #expect(place.fault?.code == (isSealed ? .wrongKey : .notSealed))
    #expect(throws: SealedDatabaseError.self) {
      try SealedVFS.require(key: TemporaryDatabase.key(), at: place.database)
    }
    #expect(try place.changes(since: before).isEmpty)
  }

  @Test func `a journal full of header copies costs a bounded number of calls`() throws {
    let (written, connection) = try TemporaryDatabase.reopened()
    try connection.run("PRAGMA cache_size = 3; BEGIN; UPDATE t SET text = text || '!'")
    let place = try written.afterKill()
    let copy = [0, 0, 0, 1] + (try place.bytes(place.database)[..<16]) + [0, 0, 0, 0]
    let copies = Array(repeatElement(copy, count: 20_000).joined())
    try place.change(place.journal) { $0 = Array(repeating: 0, count: 512) + copies }
    try place.overwrite(place.database) { $0.replaceSubrange(0..<16, with: Self.garbage[1]) }
    let layer = LayerVFS()
    #expect(throws: SQLFailure.self) {
      try place.connect(over: layer.name).run("SELECT count(*) FROM t")
    }
    #expect(place.fault?.code == .notSealed)
    #expect(layer.callCount < 500)
  }

  @Test(arguments: ["WAL", "DELETE"])
  func `a log or hot journal with every page restores a small database of which nothing is left`(
    mode: String
  ) throws {
    let (written, connection) = try TemporaryDatabase.reopened(rowCount: 20, mode: mode)
    try connection.run("PRAGMA cache_size = 1; PRAGMA wal_autocheckpoint = 0; BEGIN")
    try connection.run("UPDATE t SET text = text || '!'; CREATE TABLE more (x)")
    if mode == "WAL" { try connection.run("COMMIT") }
    let place = try written.afterKill()
    try place.overwrite(place.database) { bytes in
      for index in bytes.indices { bytes[index] = 0xA5 }
    }
    let reopened = try place.connect()
    let changed = try reopened.first("SELECT count(*) FROM t WHERE text LIKE '%!'")
    #expect(changed == (mode == "WAL" ? "20" : "0"))
    #expect(try reopened.integrity == "ok")
  }
}
