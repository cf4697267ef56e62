import FaultVFS
import SealedVFS
import Testing
import VaultCrypto

/// A power cut in a rollback-mode transaction that allocates a free page leaves the page torn.
///
/// No journal has a copy of the page, and SQLite never reads it.
@Suite struct DamagedFreePageTests {
  /// A database with free pages, and the number of leaf pages in its free list.
  private func makeDatabase() throws -> (place: TemporaryDatabase, leafCount: Int, pageCount: Int) {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 200, mode: "DELETE")
    try connection.run("DELETE FROM t WHERE id > 20")
    let freeCount = try #require(Int(try connection.first("PRAGMA freelist_count") ?? ""))
    let pageCount = try #require(Int(try connection.first("PRAGMA page_count") ?? ""))
    try #require((3...1000).contains(freeCount))  // all on one trunk
    return (place, freeCount - 1, pageCount)
  }

  @Test func `a torn free page leaves verification clean and does not stop a key change`() throws {
    let (place, leafCount, pageCount) = try makeDatabase()
    let whole = try place.bytes(place.database)
    var harmlessCount = 0
    for page in 2...pageCount {
      var bytes = whole
      bytes[(page - 1) * 4096 + 900] ^= 1
      try place.write(bytes, to: place.database)
      let found = try place.verify()
      guard found.damagedFreePageCount == 1 else {
        #expect(found.damagedPages == [UInt32(page)] && !found.isClean)
        #expect(throws: SealedDatabaseError.self) { try place.changeKey() }
        continue
      }
      harmlessCount += 1
      #expect(found.isClean && found.damagedPages.isEmpty && found.contentCheck == .done)
      try place.changeKey()
      #expect(try place.verify(TemporaryDatabase.otherKeyBytes).isClean)
      try place.withConnection(TemporaryDatabase.otherKeyBytes) { connection in
        #expect(try connection.rowCount == "20")
        #expect(try connection.integrity == "ok")
        try connection.fill(100, from: 1000)  // allocates the free pages again
        #expect(try connection.integrity == "ok")
      }
    }
    #expect(harmlessCount == leafCount)
  }
}
