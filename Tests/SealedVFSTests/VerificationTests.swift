import CSQLite
import FaultVFS
import FileLayer
import SealedVFS
import Testing

@Suite struct VerificationTests {
  private func flipByte(_ place: TemporaryDatabase, page: UInt32, at offset: Int = 900) throws {
    try place.change(place.database) { $0[(Int(page) - 1) * 4096 + offset] ^= 1 }
  }

  @Test(arguments: DatabaseFixture.positives)
  func `verify reports a database that opens as clean, and changes no file`(
    _ fixture: DatabaseFixture
  ) throws {
    let place = try fixture.place()
    let before = try place.contents()
    let found = try place.verify()
    #expect(found.isClean && found.contentCheck == .done, "\(found)")
    #expect(try place.contents() == before)
    #expect(found.repairedPageCount == (fixture.name == "torn-first-page" ? 1 : 0))
    let hasTail = ["torn-log", "damaged-log-frame"].contains(fixture.name)
    #expect((found.log.discardedTail != nil) == hasTail)
    #expect((found.log.otherGeneration != nil) == (fixture.name == "log-header-salts"))
    #expect(!found.log.changedHeaderFrames.isEmpty == (fixture.name == "log-first-page-header"))
    #expect((found.journal.state == .hot) == (place.exists(place.journal)))
  }

  @Test(arguments: DatabaseFixture.negatives)
  func `verify reports each fault that stops an opening, and changes no file`(
    _ fixture: DatabaseFixture
  ) throws {
    let place = try fixture.place()
    let before = try place.contents()
    guard case .refused(let code, let page) = fixture.outcome else { return }
    do {
      let found = try place.verify()
      #expect(!found.isClean)
      switch fixture.name {
      case "other-magic", "key-check": #expect(found.isHeaderDamaged)
      case "pages-exchanged": #expect(found.damagedPages == [3, 4])
      case "page-of-zeros": #expect(found.emptyPages == [3])
      case "last-page-missing": #expect(found.missingPageCount == 1)
      case "log-version-of-sqlite": #expect(found.log.state == .foreign)
      case "journal-record": #expect(found.journal.damagedRecords == [1])
      case "journal-header": #expect(found.journal.state == .damaged)
      case "super-journal-name": #expect(found.journal.superJournalFault != nil)
      case "journal-first-byte": #expect(found.journal.state == .damaged)
      default: #expect(page != nil && found.damagedPages == [page])
      }
    } catch let error as SealedDatabaseError {
      #expect(
        ["newer-version", "draft-version", "file-id", "plain-database"].contains(fixture.name),
        "\(error)")
      #expect(error.code == code)
    }
    #expect(try place.contents() == before)
  }

  @Test func `verify reports a damaged journal exactly if an opening refuses it`() throws {
    let fixture = try #require(
      DatabaseFixture.forged.first { $0.name == "hot-journal-of-two-segments" })
    let second = 9216  // the offset of the second segment
    let cuts = [
      1, 2, 3, 4, 67, 68, 511, 512, 4000, second, second + 68, second + 511, second + 512,
    ]
    var changes: [(String, (inout [UInt8]) -> Void)] = cuts.map { count in
      ("cut to \(count)", { $0.removeLast($0.count - count) })
    }
    for index in [1, 10, 512 + 3, 2000, second, second + 1, second + 10] {
      changes.append(("byte \(index)", { $0[index] ^= 1 }))
    }
    changes.append(("no page number", { $0.replaceSubrange(512..<516, with: [0, 0, 0, 0]) }))
    var outcomes: Set<Bool> = []
    for (name, change) in changes {
      let place = try fixture.place()
      try place.change(place.journal, change)
      let isAuthentic = try place.verify().isAuthentic
      _ = try? place.connect().run("SELECT sum(length(text)) FROM t")
      #expect(isAuthentic == (place.fault == nil), "\(name)")
      outcomes.insert(isAuthentic)
    }
    #expect(outcomes.count == 2)
  }

  @Test func `verify ends a journal where a segment lacks records, as an opening does`() throws {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 600)
    // Records are numbered before they are synchronized: a header cannot vouch for them.
    try connection.run("PRAGMA synchronous = NORMAL; PRAGMA cache_size = 5; BEGIN")
    try connection.run("UPDATE t SET text = replace(text, 'canary', 'secret')")
    let killed = try place.afterKill()
    try killed.change(killed.journal) { journal in
      let second = stride(from: 512, to: journal.count, by: 512).first {
        Array(journal[$0..<$0 + 4]) == [0, 0x44, 0x56, 0x4A]
      }
      guard let second, journal[5] == 2 else { return journal.removeAll() }
      var header = Array(journal[second..<second + 512])
      header[10] ^= 1
      // All records of the first segment but one, then a header that does not open.
      let end = 512 + ((second - 512) / 4104 - 1) * 4104
      let padding = [UInt8](repeating: 0, count: (end + 511) / 512 * 512 - end)
      journal = journal[..<end] + padding + header
    }
    let found = try killed.verify()
    #expect(found.journal.state == .hot && found.journal.recordCount > 0)
    #expect(found.isAuthentic)
    _ = try killed.connect().run("SELECT sum(length(text)) FROM t")
    #expect(killed.fault == nil && !killed.exists(killed.journal))
  }

  @Test func `verify lists exactly the damaged page for damage at any offset`() throws {
    let place = try TemporaryDatabase.made(rowCount: 300)
    let image = try place.bytes(place.database)
    #expect(image.count / 4096 > 20)
    for page in 1...image.count / 4096 {
      for offset in [page == 1 ? 16 : 0, 2000, 4056, 4095] {
        try place.write(image, to: place.database)
        try flipByte(place, page: UInt32(page), at: offset)
        let found = try place.verify()
        #expect(found.damagedPages == [UInt32(page)] && found.damagedPageCount == 1)
        #expect(found.lostPageCount == 1 && found.missingPageCount == 0)
      }
    }
  }

  @Test func `verify's progress ends at all pages, and its lists end at a thousand entries`() throws
  {
    let place = try TemporaryDatabase.made(rowCount: 16_000)
    try place.change(place.database) { bytes in
      for start in stride(from: 4096, to: bytes.count, by: 4096) { bytes[start + 7] ^= 4 }
    }
    var steps: [PageProgress] = []
    let found = try place.verify { steps.append($0) }
    #expect(found.damagedPageCount == found.pageCount - 1 && found.damagedPageCount > 1000)
    #expect(found.damagedPages == Array(2...1001))
    #expect(found.contentCheck == .notPossible)
    #expect(
      steps.last
        == PageProgress(completedPageCount: 2 * found.pageCount, pageCount: 2 * found.pageCount))
    #expect(steps.map(\.completedPageCount) == steps.map(\.completedPageCount).sorted())
  }

  /// A database killed in WAL mode after some commits of several pages each.
  private func killedInLogMode() throws -> TemporaryDatabase {
    try .killed { connection in
      for round in 0..<4 { try connection.run("UPDATE t SET text = text || \(round)") }
    }
  }

  @Test func `a damaged frame ends the log there, and the frames after it are counted`() throws {
    let place = try killedInLogMode()
    let log = try place.bytes(place.log)
    let whole = try place.verify().log
    #expect(whole.frameCount == (log.count - 32) / 4120)
    #expect(whole.committedFrameCount == whole.frameCount && whole.discardedTail == nil)
    for frame in 1...whole.frameCount {
      try place.change(place.log) { $0[32 + (frame - 1) * 4120 + 24 + 77] ^= 1 }
      let found = try place.verify()
      #expect(found.log.validFrameCount == frame - 1)
      #expect(found.log.committedFrameCount <= frame - 1)
      #expect(
        found.log.discardedTail
          == DiscardedLogTail(firstFrame: frame, frameCount: whole.frameCount - frame + 1))
      try place.write(log, to: place.log)
    }
  }

  @Test func `verify's committed frame count is the number of frames that SQLite uses`() throws {
    let place = try killedInLogMode()
    let frameCount = try place.verify().log.frameCount
    for frame in stride(from: 1, through: frameCount, by: 3) {
      let copy = try place.afterKill()
      try copy.change(copy.log) { $0[32 + (frame - 1) * 4120 + 4100] ^= 1 }
      let committed = try copy.verify().log.committedFrameCount
      try copy.withConnection { connection in
        try connection.run("SELECT count(*) FROM t")
        var logFrames: Int32 = 0
        sqlite3_wal_checkpoint_v2(
          connection.pointer, nil, SQLITE_CHECKPOINT_PASSIVE, &logFrames, nil)
        #expect(Int(logFrames) == committed)
      }
    }
  }

  @Test func `frames from before the log's restart are no fault`() throws {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.fill(100)
    try connection.run("PRAGMA wal_checkpoint(RESTART); UPDATE t SET text = '' WHERE id = 1")
    let found = try place.afterKill().verify()
    #expect(found.isClean && found.log.discardedTail == nil)
    #expect(found.log.staleFrameCount > 3 && found.log.committedFrameCount > 0)
    #expect(found.log.staleFrameCount + found.log.committedFrameCount == found.log.frameCount)
  }

  @Test func `verify counts a damaged page with a newer copy in the log as repaired`() throws {
    let place = try killedInLogMode()
    let pageCount = try place.bytes(place.database).count / 4096
    for page in 1...pageCount { try flipByte(place, page: UInt32(page)) }
    let found = try place.verify()
    #expect(found.damagedPageCount == pageCount)
    #expect(!found.repairedPages.contains(1) && found.repairedPages.contains(3))
    let held = try place.verify().lostPageCount
    #expect(held == pageCount - found.repairedPageCount && held > 0)
    #expect(!found.isClean)
  }

  @Test func `verify counts the missing pages of a file cut at any length`() throws {
    let place = try TemporaryDatabase.made(rowCount: 40)
    let image = try place.bytes(place.database)
    for byteCount in stride(from: 4096, to: image.count, by: 1000) {
      try place.write(Array(image[..<byteCount]), to: place.database)
      let found = try place.verify()
      #expect(found.missingPageCount == image.count / 4096 - byteCount / 4096)
      #expect(found.trailingByteCount == byteCount % 4096)
      #expect(found.damagedPageCount == 0 && !found.isClean)
    }
    try place.write(Array(image[..<15]), to: place.database)
    #expect(throws: SealedDatabaseError.self) { try place.verify() }
  }

  @Test func `verify accepts a page of zeros only if the list of free pages names it`() throws {
    let place = try TemporaryDatabase.made()
    _ = try place.withConnection { try $0.run("DELETE FROM t WHERE id > 20") }
    let free = try place.query("PRAGMA freelist_count")
    #expect(Int(free ?? "") ?? 0 > 20)
    let pageCount = try place.bytes(place.database).count / 4096
    try place.change(place.database) { $0.clear(page: pageCount) }
    #expect(try place.verify().isClean)
    try place.change(place.database) { $0.clear(page: 2) }
    let found = try place.verify()
    #expect(found.emptyPages == [2] && found.lostPageCount == 1)
  }

  @Test func `verify's wrong-key error mentions the header, and a damaged header is found`() throws
  {
    let place = try TemporaryDatabase.made(rowCount: 40)
    let failure = #expect(throws: SealedDatabaseError.self) {
      try place.verify(TemporaryDatabase.otherKeyBytes)
    }
    #expect(failure?.code == .wrongKey && failure?.description.contains("first 16 bytes") == true)
    for offset in 0..<8 where offset != 3 {
      try place.change(place.database) { $0[offset] ^= 0x10 }
      let found = try place.verify()
      #expect(found.isHeaderDamaged && found.damagedPages.isEmpty && !found.isClean)
      try place.change(place.database) { $0[offset] ^= 0x10 }
    }
  }

  @Test func `verify takes a damaged file id from the log`() throws {
    let place = try killedInLogMode()
    let connection = try place.connect()
    try connection.run("CREATE TABLE more (x)")  // puts page 1 into the log
    let copy = try place.afterKill()
    try copy.change(copy.database) { $0[12] ^= 1 }
    let found = try copy.verify()
    #expect(found.isHeaderDamaged && found.damagedPages.isEmpty)
  }

  @Test func `verify is refused beside an open log, and locks out writers while it runs`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.fill(40)
    var result: Int32 = SQLITE_OK
    _ = try place.verify { _ in
      result = sqlite3_exec(connection.pointer, "DELETE FROM t", nil, nil, nil)
    }
    #expect(result & 0xFF == SQLITE_BUSY)
    try connection.run("BEGIN IMMEDIATE; UPDATE t SET text = '' WHERE id = 1")
    #expect(try place.verify().isClean)
    try connection.run("COMMIT; PRAGMA journal_mode = WAL; UPDATE t SET text = 'x' WHERE id = 2")
    let failure = #expect(throws: SealedDatabaseError.self) { try place.verify() }
    #expect(failure?.code == .busy)
    try connection.run("UPDATE t SET text = 'y' WHERE id = 2")
    connection.close()
    // In WAL mode without a log on disk, verify still locks out connections that would create one.
    let before = try place.contents()
    var other: Int32 = SQLITE_OK
    _ = try place.verify { _ in
      do { _ = try place.open().run("SELECT * FROM t") } catch let failure as SQLFailure {
        other = failure.primaryCode
      } catch {}
    }
    #expect(other == SQLITE_BUSY)
    #expect(try place.contents() == before)
  }
}
