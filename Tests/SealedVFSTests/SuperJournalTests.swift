import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// The pointer at the end of a hot journal, which is in the clear and could name any file.
@Suite struct SuperJournalTests {
  private static let properSuffix = "-mj0123AB9CD"

  /// A database of 400 rows after a kill in a transaction that had changed some of them on disk.
  private func interrupted() throws -> TemporaryDatabase {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 400)
    // The text keeps its length, so that half of the change leaves consistent pages, too.
    try connection.run(
      "PRAGMA cache_size = 5; BEGIN; UPDATE t SET text = replace(text, 'canary', 'secret')")
    return try place.afterKill()
  }

  private func append(pointerTo name: String, _ place: TemporaryDatabase) throws {
    try place.change(place.journal) { $0 += SuperJournalPointer.bytes(naming: name) }
  }

  private var changedRowCount: String { "SELECT count(*) FROM t WHERE text LIKE 'secret%'" }

  /// Expects that the opening is refused, verify reports the journal, and no file changes.
  private func expectRefusal(_ place: TemporaryDatabase) throws {
    let before = try place.contents()
    place.expectFault(.damagedJournal) { try place.connect().run("SELECT count(*) FROM t") }
    #expect(place.fault?.detail?.contains("super-journal") == true)
    let found = try place.verify()
    #expect(found.journal.state == .damaged && found.journal.superJournalFault != nil)
    #expect(!found.isClean)
    let image = try SealedImage(place.database, key: TemporaryDatabase.key())
    #expect(!image.areLogAndJournalWhole)
    #expect(try place.changes(since: before) == [])
    if ReferenceDatabaseReader.isAvailable {
      #expect(try ReferenceDatabaseReader.rowCount(of: place).hasPrefix("refused: super-journal"))
    }
  }

  @Test(arguments: [
    "important.txt", "test.db-mj0123ab9CD", "test.db-mj0123AB8CD", "test.db-mj0123AB9CDE",
    "test.db-mk0123AB9CD", "important.txt\0-mj0123AB9CD",
  ])
  func `a journal that names an invalid super-journal is refused, and the file is kept`(
    name: String
  ) throws {
    for isThere in [true, false] {
      let place = try interrupted()
      let path = place.directory.appending("").string + "/" + name
      if isThere {
        let file = String(path.prefix { $0 != "\0" })
        try place.write(Array("\(place.journal)\0".utf8), to: FilePath(file))
      }
      try append(pointerTo: path, place)
      try expectRefusal(place)
    }
  }

  @Test func `a super-journal name that the file system refuses is refused`() throws {
    let place = try interrupted()
    try append(pointerTo: "/" + String(repeating: "a", count: 300) + Self.properSuffix, place)
    try expectRefusal(place)
  }

  @Test(arguments: ["test.db", ""])
  func `a super-journal that is not named by its full path is refused`(name: String) throws {
    let place = try interrupted()
    try append(pointerTo: name + Self.properSuffix, place)
    try expectRefusal(place)
  }

  @Test(arguments: ["", "JOURNAL", "JOURNALx\0", "/other.db-journal\0", "JOUR\0NAL\0"])
  func `a super-journal that does not list the journal is refused and kept`(
    contents: String
  ) throws {
    let place = try interrupted()
    let path = FilePath(place.database.string + Self.properSuffix)
    let half = place.journal.string.count / 2
    let contents =
      contents
      .replacingOccurrences(of: "JOURNAL", with: place.journal.string)
      .replacingOccurrences(of: "JOUR", with: String(place.journal.string.prefix(half)))
      .replacingOccurrences(of: "NAL", with: String(place.journal.string.dropFirst(half)))
    try place.write(Array(contents.utf8), to: path)
    try append(pointerTo: path.string, place)
    try expectRefusal(place)
    #expect(place.exists(path))
  }

  @Test func `a symbolic link or a directory in place of a super-journal is refused`() throws {
    let (place, other) = (try interrupted(), try interrupted())
    let path = place.database.string + Self.properSuffix
    try place.write(Array("\(place.journal)\0".utf8), to: place.directory.appending("list"))
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "list")
    try append(pointerTo: path, place)
    try expectRefusal(place)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.type] as? FileAttributeType == .typeSymbolicLink)

    let directory = TemporaryDatabase().directory.string + "-mj000000900"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try append(pointerTo: directory, other)
    try expectRefusal(other)
    #expect(other.exists(FilePath(directory)))
  }

  @Test func `a missing super-journal counts as a commit, and verify reports it`() throws {
    let place = try interrupted()
    try append(pointerTo: place.database.string + Self.properSuffix, place)
    let found = try place.verify()
    #expect(found.isClean && found.journal.state == .finished)
    #expect(found.journal.lacksSuperJournal && found.journal.unusedRecordCount > 3)
    let rowCount =
      ReferenceDatabaseReader.isAvailable ? try ReferenceDatabaseReader.rowCount(of: place) : "400"
    #expect(rowCount == "400")
    let changed = try #require(Int(try place.query(changedRowCount) ?? ""))
    #expect(changed > 0)
    #expect(!place.exists(place.journal))
  }

  @Test(arguments: [properSuffix, "-important"])
  func `verify and an opening check the pointer before a header that does not open`(
    suffix: String
  ) throws {
    let place = try interrupted()
    try place.change(place.journal) { $0[20] ^= 1 }
    try append(pointerTo: place.database.string + suffix, place)
    if suffix != Self.properSuffix { return try expectRefusal(place) }
    let found = try place.verify()
    #expect(found.isClean && found.journal.state == .finished && found.journal.lacksSuperJournal)
    #expect(try place.query("SELECT count(*) FROM t") == "400")
    #expect(!place.exists(place.journal))
  }

  @Test func `the journals that a super-journal lists are rolled back before it is deleted`() throws
  {
    let (first, second) = (try interrupted(), try interrupted())
    let path = FilePath(first.database.string + Self.properSuffix)
    try first.write(Array("\(first.journal)\0\(second.journal)\0".utf8), to: path)
    for place in [first, second] { try append(pointerTo: path.string, place) }
    let found = try first.verify()
    #expect(found.isClean && found.journal.state == .hot)
    if ReferenceDatabaseReader.isAvailable {
      #expect(try ReferenceDatabaseReader.rowCount(of: first) == "400")
    }
    #expect(try first.query(changedRowCount) == "0")
    #expect(first.exists(path) && !first.exists(first.journal))
    #expect(try second.query(changedRowCount) == "0")
    #expect(!first.exists(path) && !second.exists(second.journal))
  }

  @Test func `a super-journal pointer with a wrong sum does not stop the rollback`() throws {
    let place = try interrupted()
    try place.write([1, 2, 3], to: place.directory.appending("important.txt"))
    try append(pointerTo: place.directory.appending("important.txt").string, place)
    try place.change(place.journal) { $0[$0.count - 9] ^= 1 }
    #expect(try place.query(changedRowCount) == "0")
    #expect(place.exists(place.directory.appending("important.txt")))
  }

  @Test func `a super-journal pointer that lost its name and sum does not stop the rollback`()
    throws
  {
    let place = try interrupted()
    try append(pointerTo: String(repeating: "\0", count: 60), place)
    if ReferenceDatabaseReader.isAvailable {
      #expect(try ReferenceDatabaseReader.rowCount(of: place) == "400")
    }
    #expect(try place.verify().journal.state == .hot)
    #expect(try place.query(changedRowCount) == "0")
    #expect(!place.exists(place.journal))
  }

  // SQLite 3.53 allocates memory between the magic and the name. If that fails, a connection with
  // `locking_mode=EXCLUSIVE` stays usable.
  @Test func `a super-journal pointer can be read again after its name was not`() throws {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 400)
    try connection.run(
      "PRAGMA cache_size = 5; BEGIN; UPDATE t SET text = replace(text, 'canary', 'secret')")
    let name = place.database.string + Self.properSuffix
    let pointer = SuperJournalPointer.bytes(naming: name)
    try place.overwrite(place.journal) { $0 += pointer }
    let end = try place.bytes(place.journal).count
    var file: UnsafeMutablePointer<sqlite3_file>?
    sqlite3_file_control(connection.pointer, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file)
    let journal = try #require(file)
    func read(_ byteCount: Int, before distance: Int) -> ArraySlice<UInt8> {
      var bytes = [UInt8](repeating: 0, count: byteCount)
      let offset = Int64(end - distance - byteCount)
      let result = journal.pointee.pMethods.pointee.xRead(
        journal, &bytes, Int32(byteCount), offset)
      #expect(result == SQLITE_OK)
      return bytes[...]
    }
    #expect(read(8, before: 0) == pointer.suffix(8))
    #expect(read(4, before: 12) == pointer.suffix(16).prefix(4))
    #expect(read(8, before: 0) == pointer.suffix(8))
    #expect(read(name.utf8.count, before: 16) == Array(name.utf8)[...])
  }

  @Test func `a super-journal pointer that changes between two reads is refused`() throws {
    let place = try interrupted()
    let important = place.directory.appending("important.txt")
    try place.write([1, 2, 3], to: important)
    // SQLite checks the journal, locks the database, and checks the journal again.
    var accessCount = 0
    let hook = HookVFS(named: "super-journal-exchange") { path in
      guard path == place.journal else { return }
      accessCount += 1
      if accessCount == 2 { try? append(pointerTo: important.string, place) }
    }
    place.expectFault(.damagedJournal) {
      try place.connect(over: hook.name).run("SELECT count(*) FROM t")
    }
    #expect(accessCount >= 2)
    #expect(try place.bytes(important) == [1, 2, 3])
    #expect(place.exists(place.journal))
  }

  @Test(arguments: [true, false])
  func `verify counts the records after a header that does not open`(isZeroed: Bool) throws {
    let place = try interrupted()
    let recordCount = try place.verify().journal.recordCount
    try place.change(place.journal) { bytes in
      for index in 0..<68 { bytes[index] = isZeroed ? 0 : UInt8(index + 1) }
    }
    let found = try place.verify()
    #expect(found.isClean && found.journal.state == .finished)
    #expect(found.journal.unusedRecordCount >= recordCount && recordCount > 3)
  }
}
