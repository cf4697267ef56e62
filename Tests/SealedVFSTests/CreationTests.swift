import FaultVFS
import FileLayer
import FileRecording
import SealedVFS
import SystemPackage
import Testing

@Suite struct CreationTests {
  private let place = TemporaryDatabase()

  @Test func `a new database is sealed without any file control`() throws {
    let place = try TemporaryDatabase.made()
    #expect(try place.query("PRAGMA integrity_check") == "ok")
    #expect(try place.bytes(place.database).starts(with: [0x8E, 0x44, 0x56, 1]))
  }

  @Test func `a new file gets the requested identity`() throws {
    let fileID: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    try place.connect(newFileID: fileID).fill(3)
    #expect(try place.header().fileID == fileID)
  }

  @Test func `ATTACH creates a sealed database beside a plain one`() throws {
    let (plain, sealed) = (TemporaryDatabase(), TemporaryDatabase())
    try sealed.register()
    let connection = try plain.open()
    try connection.run(
      """
      CREATE TABLE p (a); INSERT INTO p VALUES ('canary');
      ATTACH '\(sealed.database)' AS s; CREATE TABLE s.t AS SELECT a FROM p
      """)
    #expect(try connection.first("SELECT a FROM s.t") == "canary")
    connection.close()
    #expect(try plain.bytes(plain.database).contains(text: "canary"))
    #expect(try !sealed.bytes(sealed.database).contains(text: "canary"))
  }

  @Test func `a database without a key is opened by the unix VFS`() throws {
    try SealedVFS.install()
    let connection = try place.open()
    try connection.fill(10)
    #expect(SealedConnection.vfsName(of: connection.pointer) == "unix")
    #expect(try place.bytes(place.database).starts(with: "SQLite format 3\0".utf8))
  }

  @Test func `vfsName(of:) names the sealed VFS for a sealed connection`() throws {
    let connection = try place.connect()
    #expect(SealedConnection.vfsName(of: connection.pointer) == "sealed")
  }

  @Test func `a write fails if the promised reserved bytes were not set`() throws {
    let connection = try place.connect(setsReserve: true)
    place.expectFault(.reserveInUse) { try connection.fill(3) }
    connection.close()
    let reserving = try place.open()
    #expect(SealedConnection.reserveBytes(of: reserving.pointer) == 40)
    try reserving.run("PRAGMA auto_vacuum = INCREMENTAL")
    try reserving.fill(3)
    #expect(try reserving.first("PRAGMA auto_vacuum") == "2")
  }

  @Test func `a new database refuses a page size other than 4096`() throws {
    let connection = try place.connect(setsReserve: true)
    try connection.run("PRAGMA page_size = 8192")
    #expect(throws: SQLFailure.self) { try connection.fill(3) }
  }

  @Test func `a spilled first transaction can be rolled back after a kill`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.run("PRAGMA cache_size = 5; BEGIN")
    try connection.fill(2000)
    let killed = try place.afterKill()
    #expect(killed.fileNames.contains("test.db-journal"))
    #expect(try killed.bytes(killed.database).count > 4096)
    // Page 1 is not written yet: the file has only the header at its offset.
    let page = try killed.bytes(killed.database)[0..<4096]
    #expect(page.starts(with: [0x8E, 0x44, 0x56, 1]))
    #expect(page.dropFirst(16).allSatisfy { $0 == 0 })
    try killed.register()
    #expect(try killed.open().first("SELECT count(*) FROM sqlite_master") == "0")
    #expect(killed.exists(killed.journal) == false)
    let again = try killed.open()
    try again.fill(5)
    #expect(try again.integrity == "ok")
  }

  @Test func `the identity of a new file is on disk before its first page`() throws {
    let recorder = FileRecorder()
    try place.connect(over: RecordingVFS(recorder).name).fill(3)
    let steps = recorder.events.filter { event in
      switch event {
      case .write(place.database, _, _), .synchronize(place.database): true
      default: false
      }
    }
    let header = try Array(place.bytes(place.database)[0..<16])
    #expect(
      Array(steps.prefix(2)) == [
        .write(place.database, offset: 0, bytes: header), .synchronize(place.database),
      ])
  }
}
