import FaultVFS
import Foundation
import SealedVFS
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
}
