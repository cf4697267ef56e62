import CSQLite
import FaultVFS
import FileLayer
import FileRecording
import SealedVFS
import SystemPackage
import Testing

/// A disk that is full at one step of a transaction.
@Suite struct FullDiskTests {
  @Test func `a full disk at any step is an error, and the next transaction works`() throws {
    let place = try TemporaryDatabase.made(rowCount: 50, mode: "WAL")
    for event in 0... {
      let copy = try place.afterKill()
      let recorder = FileRecorder(fault: .failure(atEvent: event, .noSpace))
      let connection = try copy.connect(over: RecordingVFS(recorder).name)
      do {
        try connection.fill(20, from: 100)
      } catch let failure as SQLFailure {
        #expect([SQLITE_FULL, SQLITE_IOERR].contains(failure.primaryCode), "event \(event)")
      }
      if recorder.failableEventCount <= event { break }  // the disk was never full
      if sqlite3_get_autocommit(connection.pointer) == 0 {
        try connection.run("ROLLBACK")
      }
      try connection.fill(20, from: 1000)
      #expect(try connection.integrity == "ok")
      let count = try #require(Int(try connection.rowCount ?? ""))
      #expect(count == 70 || count == 90)
    }
  }

  /// The commit needs another region of the index, which has no room.
  ///
  /// SQLite adds a region for frame 4063, after it has written all frames.
  @Test func `a commit that is in the log is never reported as SQLITE_FULL`() throws {
    let place = TemporaryDatabase()
    let connection = try place.connect(over: FullDiskVFS.register(hasRoomForOneRegion: true))
    try connection.run("PRAGMA journal_mode = WAL; PRAGMA cache_size = 9000")
    try connection.run("CREATE TABLE large (bytes BLOB)")
    let failure = #expect(throws: SQLFailure.self) {
      try connection.run("INSERT INTO large VALUES (zeroblob(17000000))")
    }
    #expect(failure?.primaryCode == SQLITE_IOERR)
    #expect(try place.afterKill().query("SELECT count(*) FROM large") == "1")
  }
}
