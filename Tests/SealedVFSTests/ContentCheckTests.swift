import CSQLite
import FaultVFS
import FileLayer
import SealedVFS
import Testing

@Suite struct ContentCheckTests {
  /// A database with an index, and its file as it was before half of its rows were written.
  private func grown(_ mode: String = "DELETE") throws -> (TemporaryDatabase, older: [UInt8]) {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.fill(150)
    try connection.run("CREATE INDEX i ON t (text)")
    connection.close()
    let older = try place.bytes(place.database)
    let later = try place.open()
    try later.run("PRAGMA journal_mode = \(mode)")
    try later.fill(150, from: 151)
    later.close()
    return (place, older)
  }

  @Test func `verify reports the contradictions that an older version of a page causes`() throws {
    let (place, older) = try grown()
    let newer = try place.bytes(place.database)
    let replayed = (2...older.count / 4096).filter { older[page: $0] != newer[page: $0] }
    var contradictions = 0
    for number in replayed {
      try place.write(newer, to: place.database)
      try place.change(place.database) { $0[page: number] = older[page: number] }
      let before = try place.contents()
      let found = try place.verify()
      #expect(found.isAuthentic && found.lostPageCount == 0)
      // An older version can agree with the other pages. SQLite, through the usual VFS, decides.
      let isSound = try place.query("PRAGMA integrity_check") == "ok"
      #expect(found.contentCheck == .done && found.contentFaults.isEmpty == isSound)
      #expect(found.contentFaults.count <= 100 && found.isClean == isSound, "page \(number)")
      if !isSound { contradictions += 1 }
      #expect(!found.contentFaults.contains { $0.contains("\n") || $0.contains("canary") })
      let quick = try place.verify(checksContents: false)
      #expect(quick.isClean && quick.contentCheck == .notAsked && quick.contentFaults.isEmpty)
      #expect(try place.contents() == before)
    }
    #expect(contradictions >= 2)
  }

  @Test func `verify ignores an older version of a page if the log holds its current copy`() throws
  {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.fill(150)
    try connection.run("CREATE INDEX i ON t (text); PRAGMA wal_checkpoint(TRUNCATE)")
    let older = try place.afterKill()
    let image = try older.bytes(older.database)
    try connection.fill(150, from: 151)
    try connection.run("PRAGMA wal_checkpoint(TRUNCATE)")
    try connection.run("UPDATE t SET text = text || 'x' WHERE id BETWEEN 140 AND 160")
    let now = try place.afterKill()
    let newer = try now.bytes(now.database)
    let inTheLog = try (2...image.count / 4096).filter { number in
      guard image[page: number] != newer[page: number] else { return false }
      try now.change(now.database) {
        $0 = newer
        $0[(number - 1) * 4096 + 100] ^= 1
      }
      let isRepaired = try now.verify().repairedPages == [UInt32(number)]
      try now.change(now.database) {
        $0 = newer
        $0[page: number] = image[page: number]
      }
      let before = try now.contents()
      let found = try now.verify()
      #expect(found.isAuthentic && found.log.committedFrameCount > 0)
      if isRepaired { #expect(found.contentFaults.isEmpty, "page \(number)") }
      #expect(try now.contents() == before)
      return isRepaired
    }
    #expect(!inTheLog.isEmpty)
  }

  @Test func `verify lists tables that need the application, and checks the others`() throws {
    let place = TemporaryDatabase()
    try place.register()
    var older: [UInt8] = []
    do {
      let connection = try place.open()
      sqlite3_create_collation_v2(
        connection.pointer, "ours", SQLITE_UTF8, nil, { _, _, _, _, _ in 0 }, nil)
      try connection.run("CREATE TABLE o (a TEXT COLLATE ours CHECK (length(a) < 9) UNIQUE)")
      try connection.run("INSERT INTO o VALUES ('it')")
      try connection.fill(150)
      try connection.run("CREATE INDEX i ON t (text)")
      connection.close()
      older = try place.bytes(place.database)
    }
    let whole = try place.verify()
    #expect(whole.isClean && whole.uncheckedTables == ["o"])
    try place.open().fill(150, from: 151)
    let newer = try place.bytes(place.database)
    let number = try #require(
      (2...older.count / 4096).last { older[page: $0] != newer[page: $0] })
    try place.change(place.database) { $0[page: number] = older[page: number] }
    let found = try place.verify()
    #expect(found.isAuthentic && found.uncheckedTables == ["o"] && !found.contentFaults.isEmpty)
  }

  @Test func `verify's progress includes the content check and never passes the end`() throws {
    let (place, _) = try grown()
    var steps: [PageProgress] = []
    let found = try place.verify { steps.append($0) }
    #expect(found.isClean)
    #expect(steps.map(\.completedPageCount) == steps.map(\.completedPageCount).sorted())
    #expect(Set(steps.map(\.pageCount)) == [2 * found.pageCount])
    #expect(steps.last?.completedPageCount == 2 * found.pageCount)
  }

  @Test func `verify reports a schema that SQLite cannot read as a content fault`() throws {
    let place = try TemporaryDatabase.made(rowCount: 20)
    _ = try place.withConnection { connection in
      try connection.run(
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE t (' WHERE 1")
    }
    let found = try place.verify()
    #expect(found.isAuthentic && found.contentFaults.count == 1)
    #expect(found.contentFaults.first?.contains("malformed database schema") == true)
  }
}
