import Foundation
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import Testing
import VaultCrypto

@Suite struct CopyErrorTests {
  private let place = SamplePlace()

  @Test(arguments: SamplePlace.Format.allCases)
  func `copy() never changes an existing file at the target`(format: SamplePlace.Format) throws {
    try place.makePlain("plain.db", rowCount: 10)
    for name in ["copy.db", "copy.db-wal", "copy.db-journal"] {
      try place.write([1, 2, 3], name)
      expectError(.alreadyExists) { try place.copy("plain.db", .plain, "copy.db", format) }
      #expect(try place.bytes(name) == [1, 2, 3])
      #expect(place.names == [name, "plain.db"].sorted())
      try FileManager.default.removeItem(atPath: place.path(name).string)
    }
    try FileManager.default.createSymbolicLink(
      atPath: place.path("copy.db").string, withDestinationPath: "nowhere")
    expectError(.alreadyExists) { try place.copy("plain.db", .plain, "copy.db", format) }
  }

  @Test func `copy() drops no damaged row because of its table's conflict clause`() throws {
    let queue = try DatabaseQueue(path: place.path("plain.db").string)
    try queue.inDatabase { db in
      try db.execute(
        sql: """
          CREATE TABLE t (a TEXT, b INT NOT NULL ON CONFLICT IGNORE);
          INSERT INTO t VALUES ('row 1', 5), ('row 2', 0), ('row 3', 7);
          """)
    }
    try queue.close()
    var bytes = try place.bytes("plain.db")
    let row = try #require(bytes.firstRange(of: Array("row 2".utf8)))
    bytes[row.lowerBound - 1] = 0  // the type of b: NULL instead of 0
    try place.write(bytes, "plain.db")
    #expect(throws: SealedDatabaseError.self) {
      try place.copy("plain.db", .plain, "copy.db", .sealed)
    }
    #expect(place.names == ["plain.db"])
  }

  @Test(arguments: [
    ("nothing", SamplePlace.Format.sealed, SealedDatabaseError.Code.notFound),
    ("nothing", .sqlcipher4, .notFound), ("nothing", .plain, .notFound),
    ("plain", .sealed, .plainDatabase), ("plain", .sqlcipher4, .plainDatabase),
    ("sealed", .plain, .notPlainDatabase), ("sqlcipher4", .plain, .notPlainDatabase),
    ("text", .plain, .notPlainDatabase), ("text", .sealed, .notSealed),
    ("sqlcipher4", .sealed, .notSealed), ("text", .sqlcipher4, .wrongKeyOrNotSQLCipher),
    ("sealed", .sqlcipher4, .wrongKeyOrNotSQLCipher),
  ])
  func `copy() reports a source of another format by its own code`(
    name: String, format: SamplePlace.Format, code: SealedDatabaseError.Code
  ) throws {
    try place.makeOneOfEach()
    let names = place.names
    expectError(code) { try place.copy(name, format, "copy.db", .plain) }
    #expect(place.names == names)
  }

  @Test func `copy() leaves no file beside a database with a foreign log`() throws {
    try place.makeOneOfEach()
    try place.write([UInt8](repeating: 7, count: 5000), "sealed-wal")
    let names = place.names
    try place.copy("sealed", .sealed, "copy.db", .plain)
    #expect(place.names == (names + ["copy.db"]).sorted())
  }

  @Test func `copy() refuses a wrong or invalid key`() throws {
    try place.makeOneOfEach()
    let names = place.names
    expectError(.wrongKey) {
      try SealedDatabase.copy(
        from: .sealed(place.path("sealed"), key: testKey(8)), to: .plain(place.path("copy.db")))
    }
    expectError(.invalidArgument) {
      let invalid = DatabaseFile.sealed(
        place.path("copy.db"), key: SecretBytes(copying: [1, 2, 3]))
      try SealedDatabase.copy(from: .plain(place.path("plain")), to: invalid)
    }
    #expect(place.names == names)
    #expect(throws: SealedDatabaseError.self) { _ = try SamplePlace.key("") }
  }

  @Test(arguments: SamplePlace.Format.allCases)
  func `copying a damaged source leaves no file`(format: SamplePlace.Format) throws {
    try place.makePlain("plain.db")
    if format != .plain { try place.copy("plain.db", .plain, "\(format).db", format) }
    var bytes = try place.bytes("\(format).db")
    for index in 0..<8 { bytes[4096 * 40 + index] = 0xEE }
    try place.write(bytes, "\(format).db")
    let names = place.names
    expectError(format == .plain ? .damaged : .damagedPage) {
      try place.copy("\(format).db", format, "copy.db", .sealed)
    }
    #expect(place.names == names)
  }

  @Test func `copy() refuses a plain database that was not closed`() throws {
    let pool = try DatabasePool(path: place.path("live.db").string)
    try pool.write { try $0.execute(sql: "CREATE TABLE t (a)") }
    expectError(.notClosed) { try place.copy("live.db", .plain, "copy.db", .sealed) }
    try pool.close()
    try place.copy("live.db", .plain, "copy.db", .sealed)
    #expect(place.names == ["copy.db", "live.db"])

    try place.write([0xD9, 0xD5, 5, 0xF9, 0x20, 0xA1, 0x63, 0xD7, 0, 0], "live.db-journal")
    expectError(.notClosed) { try place.copy("live.db", .plain, "other.db", .sealed) }
    try place.write([UInt8](repeating: 0, count: 512), "live.db-journal")
    try place.copy("live.db", .plain, "other.db", .sealed)
  }

  @Test func `copy() fails with busy for a plain database open in WAL mode`() throws {
    let pool = try DatabasePool(path: place.path("live.db").string)
    try pool.write { try $0.execute(sql: "CREATE TABLE t (a)") }
    try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    expectError(.busy) { try place.copy("live.db", .plain, "copy.db", .sealed) }
    try pool.close()
  }

  @Test func `two copies to one path exclude each other, and a killed one is removed`() throws {
    try place.makePlain("plain.db", rowCount: 10)
    let side = open(place.path(".copy.db.new").string, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    #expect(flock(side, LOCK_EX | LOCK_NB) == 0)
    expectError(.busy) { try place.copy("plain.db", .plain, "copy.db", .sealed) }
    #expect(Foundation.write(side, "half a copy", 11) == 11)
    // A process that another test is starting can have the descriptor, too.
    #expect(flock(side, LOCK_UN) == 0)
    close(side)
    try place.copy("plain.db", .plain, "copy.db", .sealed)
    #expect(place.names == ["copy.db", "plain.db"])
    let attributes = try FileManager.default.attributesOfItem(atPath: place.path("copy.db").string)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test(.enabled(if: geteuid() == 0))
  func `copy() refuses and keeps a temporary file of another user`() throws {
    try place.makePlain("plain.db", rowCount: 10)
    let side = place.path(".copy.db.new").string
    try Data("theirs".utf8).write(to: URL(filePath: side))
    #expect(chown(side, 65534, 65534) == 0)
    expectError(.foreignFile) { try place.copy("plain.db", .plain, "copy.db", .sealed) }
    #expect(place.names == [".copy.db.new", "plain.db"])
    #expect(try Data(contentsOf: URL(filePath: side)) == Data("theirs".utf8))
  }

  @Test func `copy() refuses a schema with a collation that SQLite lacks`() throws {
    let queue = try DatabaseQueue(path: place.path("plain.db").string)
    try queue.inDatabase { db in
      db.add(collation: DatabaseCollation("ours") { $0.compare($1) })
      try db.execute(sql: "CREATE TABLE t (a COLLATE ours); CREATE INDEX i ON t (a)")
    }
    try queue.close()
    expectError(.sqlite) { try place.copy("plain.db", .plain, "copy.db", .sealed) }
    #expect(place.names == ["plain.db"])
  }
}
