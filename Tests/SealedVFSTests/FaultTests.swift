import FaultVFS
import SealedVFS
import SystemPackage
import TestSupport
import Testing

/// Each fault has its own error code, and finding it changes nothing on disk.
@Suite struct FaultTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: SealedDatabaseError.Code
    var page: UInt32?
    var key = TemporaryDatabase.keyBytes
    let damage: @Sendable (inout [UInt8]) -> Void
  }

  static let cases: [Case] = [
    Case(testDescription: "wrong key", code: .wrongKey, key: TemporaryDatabase.otherKeyBytes) { _ in
    },
    Case(testDescription: "another file id", code: .wrongKey) { $0[9] ^= 1 },
    Case(testDescription: "plain SQLite", code: .plainDatabase) {
      $0.replaceSubrange(0..<16, with: "SQLite format 3\0".utf8)
    },
    Case(testDescription: "other bytes", code: .notSealed) {
      $0.replaceSubrange(0..<16, with: "something else..".utf8)
    },
    Case(testDescription: "zeros", code: .notSealed) { $0.clear(page: 1) },
    Case(testDescription: "fewer bytes than a header", code: .notSealed) {
      $0.removeSubrange(10...)
    },
    Case(testDescription: "newer version", code: .newerVersion) { $0[3] = 2 },
    Case(testDescription: "a bit of page 1", code: .damagedPage, page: 1) { $0[2000] ^= 1 },
    Case(testDescription: "a nonce", code: .damagedPage, page: 2) { $0[4096 + 4056] ^= 1 },
    Case(testDescription: "a tag", code: .damagedPage, page: 2) { $0[4096 + 4095] ^= 0x80 },
    Case(testDescription: "a hole", code: .damagedPage, page: 3) { $0.clear(page: 3) },
    Case(testDescription: "two pages exchanged", code: .damagedPage, page: 2) {
      ($0[page: 2], $0[page: 3]) = ($0[page: 3], $0[page: 2])
    },
    Case(testDescription: "last page missing", code: .truncated) { $0.removeLast(4096) },
    Case(testDescription: "half a page missing", code: .damagedPage) { $0.removeLast(2048) },
    Case(testDescription: "all pages but the first missing", code: .truncated) {
      $0.removeSubrange(4096...)
    },
  ]

  @Test(arguments: cases)
  func `each fault has its own error code, and finding it changes nothing on disk`(_ fault: Case)
    throws
  {
    let place = try TemporaryDatabase.made()
    try place.change(place.database, fault.damage)
    let before = try place.contents()
    #expect(throws: SQLFailure.self) {
      let connection = try place.connect(fault.key)
      try connection.run("SELECT count(text), sum(length(text)) FROM t")
      try connection.run("UPDATE t SET text = 'x'")
    }
    if fault.testDescription == "half a page missing" {
      #expect([.damagedPage, .truncated].contains(place.fault?.code))
    } else {
      #expect(place.fault?.code == fault.code)
    }
    if let page = fault.page { #expect(place.fault?.pageNumber == page) }
    #expect(try place.changes(since: before).isEmpty)
  }

  @Test func `inspect() tells the kinds of file apart without a key`() throws {
    let place = TemporaryDatabase()
    #expect(try SealedVFS.inspect(place.database) == .absent)
    try place.write([], to: place.database)
    #expect(try SealedVFS.inspect(place.database) == .empty)
    try place.write([1, 2, 3], to: place.database)
    #expect(try SealedVFS.inspect(place.database) == .foreign)
    try place.write(Array("SQLite format 3\0 and more".utf8), to: place.database)
    #expect(try SealedVFS.inspect(place.database) == .plainSQLite)
    try place.write([], to: place.database)
    try place.makeDatabase()
    _ = try place.header()
    try place.change(place.database) { $0[3] = 7 }
    #expect(try SealedVFS.inspect(place.database) == .newerVersion(7))
    #expect(try SealedVFS.inspect(place.directory) == .foreign)
  }

  @Test func `inspect() releases no lock that this process holds`() throws {
    let (place, connection) = try TemporaryDatabase.reopened()
    try connection.run("BEGIN IMMEDIATE")
    _ = try SealedVFS.inspect(place.database)
    // Another process tries to write: our RESERVED lock must still be there.
    let lockTest = try Program.run(
      "/usr/bin/env",
      [
        "python3", "-c",
        """
        import fcntl, os, struct, sys
        fd = os.open(sys.argv[1], os.O_RDWR)
        try:
          fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0x40000001)
          print("free")
        except OSError:
          print("held")
        """, place.database.string,
      ])
    #expect(lockTest.text == "held\n")
  }
}
