import Foundation
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@Suite struct CopyTests {
  private let place = SamplePlace()

  private static let pairs = SamplePlace.Format.allCases.flatMap { from in
    SamplePlace.Format.allCases.map { (from: from, to: $0) }
  }

  @Test(arguments: Exhaustive.sample(of: pairs, oneIn: 4))
  func `copy() copies everything, from any format to any format`(
    from: SamplePlace.Format, to: SamplePlace.Format
  ) throws {
    try place.makePlain("plain.db")
    let expected = try place.dump("plain.db")
    #expect(expected.count > 2000)
    try place.copy("plain.db", .plain, "first.db", from)
    let before = try place.bytes("first.db")
    try place.copy("first.db", from, "second.db", to)
    let isUntouched = try place.bytes("first.db") == before
    #expect(isUntouched)
    try place.copy("second.db", to, "end.db", .plain)
    let isSame = try place.dump("end.db") == expected
    #expect(isSame)
    #expect(place.names == ["end.db", "first.db", "plain.db", "second.db"])
  }

  @Test(arguments: [512, 1024, 8192, 65536])
  func `copy() copies a plain database of any page size`(pageByteCount: Int) throws {
    try place.makePlain("plain.db", settings: ["page_size = \(pageByteCount)"], rowCount: 40)
    for format in [SamplePlace.Format.sealed, .sqlcipher4] {
      try place.copy("plain.db", .plain, "\(format).db", format)
      try place.copy("\(format).db", format, "\(format)-end.db", .plain)
      let isSame = try place.dump("\(format)-end.db") == place.dump("plain.db")
      #expect(isSame)
    }
  }

  @Test(arguments: [
    "auto_vacuum = FULL", "auto_vacuum = INCREMENTAL", "encoding = 'UTF-16le'",
    "encoding = 'UTF-16be'", "journal_mode = WAL",
  ])
  func `copy() copies the settings, and leaves no file beside a plain source`(
    setting: String
  ) throws {
    try place.makePlain("plain.db", settings: [setting], rowCount: 40)
    #expect(place.names == ["plain.db"])
    let before = try place.bytes("plain.db")
    for format in [SamplePlace.Format.sealed, .sqlcipher4] {
      try place.copy("plain.db", .plain, "\(format).db", format)
      try place.copy("\(format).db", format, "\(format)-end.db", .plain)
    }
    let isUntouched = try place.bytes("plain.db") == before
    #expect(isUntouched)
    #expect(place.names.count == 5)
    for format in [SamplePlace.Format.sealed, .sqlcipher4] {
      let isSame = try place.dump("\(format)-end.db") == place.dump("plain.db")
      #expect(isSame)
    }
  }

  @Test func `copy() copies an empty database`() throws {
    let queue = try DatabaseQueue(path: place.path("plain.db").string)
    try queue.inDatabase { try $0.execute(sql: "PRAGMA user_version = 3") }
    try queue.close()
    try place.copy("plain.db", .plain, "sealed.db", .sealed)
    let reader = try SealedDatabase.openReader(
      at: place.path("sealed.db"), key: testKey())
    #expect(try reader.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 3)
    try reader.close()
  }

  @Test func `a copy can be written, and has a new identity`() throws {
    try place.makePlain("plain.db", rowCount: 20)
    try place.copy("plain.db", .plain, "one.db", .sealed)
    try place.copy("one.db", .sealed, "two.db", .sealed)
    #expect(try place.bytes("one.db")[8..<16] != place.bytes("two.db")[8..<16])
    let pool = try SealedDatabase.openPool(at: place.path("two.db"), key: testKey())
    try pool.write { db in
      try db.execute(sql: "INSERT INTO keyless VALUES ('new', 1)")
      try db.execute(sql: "INSERT INTO f5 VALUES ('new', 'canary')")
      #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM log") == 21)
    }
    #expect(try pool.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    try pool.close()
    let verification = try SealedDatabase.verify(
      at: place.path("two.db"), key: testKey())
    #expect(verification.damagedPages.isEmpty)
  }

  @Test func `copy() copies a sealed database in use as of its last commit`() throws {
    let pool = try SealedDatabase.openPool(at: place.path("live.db"), key: testKey())
    try pool.write { try $0.execute(sql: "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)") }
    try place.copy("live.db", .sealed, "plain.db", .plain)
    try pool.write { try $0.execute(sql: "INSERT INTO t VALUES (3)") }
    try place.copy("live.db", .sealed, "later.db", .plain)
    for (name, count) in [("plain.db", 2), ("later.db", 3)] {
      let queue = try DatabaseQueue(path: place.path(name).string)
      #expect(try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == count)
      try queue.close()
    }
    try pool.close()
  }

  @Test func `copy()'s progress counts pages and grows to the end`() throws {
    try place.makePlain("plain.db", rowCount: 2000)
    let pageCount = try place.bytes("plain.db").count / 4096
    var told: [PageProgress] = []
    try SealedDatabase.copy(
      from: place.file("plain.db", .plain), to: place.file("sealed.db", .sealed)
    ) { told.append($0) }
    #expect(told.count > 2)
    #expect(told.allSatisfy { $0.pageCount == pageCount })
    #expect(told.map(\.completedPageCount) == told.map(\.completedPageCount).sorted())
    #expect(told.last?.completedPageCount == pageCount)
  }

  @Test func `an encrypted copy contains no plaintext of rows or schema`() throws {
    try place.makePlain("plain.db")
    func isFound(_ name: String) throws -> Bool {
      let bytes = Data(try place.bytes(name))
      return ["canary", "CREATE TABLE", "keyless", "SQLite format"].contains {
        bytes.range(of: Data($0.utf8)) != nil
      }
    }
    #expect(try isFound("plain.db"))
    for format in [SamplePlace.Format.sealed, .sqlcipher4] {
      try place.copy("plain.db", .plain, "\(format).db", format)
      #expect(try !isFound("\(format).db"))
    }
  }
}
