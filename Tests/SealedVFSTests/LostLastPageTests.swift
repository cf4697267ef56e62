import FaultVFS
import SealedVFS
import Testing

/// A hot journal beside a database file that has lost its last pages: SQLite makes the file as long as it was
/// before it rolls back.
@Suite struct LostLastPageTests {
  /// A kill in a transaction that has changed table `t`: behind that table lie the overflow pages of `last`.
  ///
  /// - Parameters:
  ///   - setup: what is committed before, with `last` there.
  ///   - change: what else the transaction does.
  private func killedTransaction(
    setup: String, change: String = ""
  ) throws -> (place: TemporaryDatabase, pageCount: Int) {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 300)
    try connection.run("CREATE TABLE last (x); \(setup)")
    let pageCount = try #require(Int(try connection.first("PRAGMA page_count") ?? ""))
    // Of the same length: the file does not grow.
    try connection.run(
      "PRAGMA cache_size = 5; BEGIN; \(change); UPDATE t SET text = replace(text, 'canary', 'secret')"
    )
    let killed = try place.afterKill()
    #expect(try killed.bytes(killed.database).count == pageCount * 4096)
    return (killed, pageCount)
  }

  /// Whether the last pages of the file are zeros that nothing seals.
  private func areHoles(_ count: Int, at place: TemporaryDatabase) throws -> Bool {
    try place.bytes(place.database).suffix(count * 4096).allSatisfy { $0 == 0 }
  }

  @Test(arguments: [1, 3])
  func `a page that the file has lost and the journal lacks is damaged, not a page of zeros`(
    lostCount: Int
  ) throws {
    let (place, pageCount) = try killedTransaction(
      setup: "INSERT INTO last VALUES (randomblob(20000))")
    try place.change(place.database) { $0.removeLast(lostCount * 4096) }
    #expect(try place.verify().missingPageCount == lostCount)
    let lost = (pageCount - lostCount + 1...pageCount).map { UInt32($0) }
    let connection = try place.connect()
    #expect(try connection.first("SELECT count(*) FROM t WHERE text LIKE 'canary%'") == "300")
    place.expectFault(.damagedPage) { try connection.run("SELECT hex(x) FROM last") }
    #expect(place.fault?.pageNumber == lost.first)
    connection.close()
    #expect(!place.exists(place.journal))
    #expect(try place.bytes(place.database).count == pageCount * 4096)
    #expect(try areHoles(lostCount, at: place))
    let found = try place.verify()
    #expect(found.emptyPages == lost && !found.isAuthentic)
  }

  @Test func `free pages that the file has lost are no loss, before the rollback and after it`()
    throws
  {
    let (place, pageCount) = try killedTransaction(
      setup: "INSERT INTO last VALUES (randomblob(20000)); DELETE FROM last")
    try place.change(place.database) { $0.removeLast(3 * 4096) }
    let before = try place.verify()
    #expect(before.journal.state == .hot && before.missingPageCount == 0 && before.isClean)
    #expect(try place.query("PRAGMA integrity_check") == "ok")
    #expect(try place.bytes(place.database).count == pageCount * 4096)
    #expect(try areHoles(3, at: place))
    #expect(try place.verify().isClean)
    try place.changeKey()
    let connection = try place.connect(TemporaryDatabase.otherKeyBytes)
    try connection.fill(100, from: 1000)  // takes the free pages into use again
    #expect(try connection.integrity == "ok")
    #expect(try connection.rowCount == "400")
  }

  @Test func `a page of zeros that a transaction wrote is sealed, and is rolled back to`() throws {
    let (place, _) = try killedTransaction(
      setup: "INSERT INTO last VALUES (zeroblob(20000))",
      change: "UPDATE last SET x = randomblob(20000)")
    for isCut in [false, true] {
      let copy = try place.afterKill()
      if isCut { try copy.change(copy.database) { $0.removeLast(4096) } }
      #expect(try copy.query("SELECT x = zeroblob(20000) FROM last") == "1")
      #expect(try !areHoles(1, at: copy))
      #expect(try copy.verify().isClean)
    }
  }
}
