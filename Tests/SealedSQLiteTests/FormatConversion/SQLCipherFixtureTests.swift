import GRDB
import SealedVFS
import SystemPackage
import Testing

/// Stored databases, made by SQLCipher 4.12: `Fixtures/databases/README.md`.
@Suite struct SQLCipherFixtureTests {
  private let place = SamplePlace()

  private static let keys = [
    "sqlcipher4-passphrase": "correct horse battery staple",
    "sqlcipher4-raw-key": SamplePlace.rawKey,
    "sqlcipher4-raw-key-and-salt": SamplePlace.rawKeyAndSalt,
    "sqlcipher4-closed-log": SamplePlace.rawKey,
  ]

  @Test(arguments: keys.keys.sorted())
  func `a registered SQLCipher database is readable by its path, and not writable`(
    name: String
  ) throws {
    try place.put(fixture: name)
    let before = try place.bytes("test.db")
    let registration = try SealedVFS.register(
      sqlcipher4: SamplePlace.key(Self.keys[name] ?? ""), at: place.path("test.db"))
    try withExtendedLifetime(registration) { () throws in
      let queue = try DatabaseQueue(path: place.path("test.db").string)
      try queue.inDatabase { db throws in
        #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM t") == 11)
        #expect(try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok")
        #expect(throws: DatabaseError.self) { try db.execute(sql: "DELETE FROM t") }
      }
      try queue.close()
    }
    let isUntouched = try place.bytes("test.db") == before
    #expect(isUntouched)
    #expect(place.names == ["test.db"])
  }

  @Test(arguments: [
    ("sqlcipher4-salt", SealedDatabaseError.Code.wrongKeyOrNotSQLCipher),
    ("sqlcipher4-first-page", .wrongKeyOrNotSQLCipher), ("sqlcipher4-page", .damagedPage),
    ("sqlcipher4-page-code", .damagedPage), ("sqlcipher4-pages-exchanged", .damagedPage),
    ("sqlcipher4-last-page-missing", .truncated),
    ("sqlcipher4-first-page-missing", .wrongKeyOrNotSQLCipher),
    ("sqlcipher4-not-closed", .notClosed), ("rows", .wrongKeyOrNotSQLCipher),
  ])
  func `each fault of an SQLCipher file has its own error, and leaves no copy`(
    name: String, code: SealedDatabaseError.Code
  ) throws {
    try place.put(fixture: name)
    let names = place.names
    for target in SamplePlace.Format.allCases {
      let failure = #expect(throws: SealedDatabaseError.self) {
        try place.copy("test.db", .sqlcipher4, "copy.db", target)
      }
      #expect(failure?.code == code, "\(failure.map(String.init(describing:)) ?? "")")
    }
    #expect(place.names == names)
  }

  @Test(arguments: ["correct horse battery stapl", SamplePlace.rawKey, " "])
  func `a wrong SQLCipher key fails with wrongKeyOrNotSQLCipher`(key: String) throws {
    try place.put(fixture: "sqlcipher4-passphrase")
    let failure = expectError(.wrongKeyOrNotSQLCipher) {
      try place.copy(sqlcipher: "test.db", key: key, "copy.db", .plain)
    }
    #expect(failure?.message.contains("not an SQLCipher 4 database") == true)
    #expect(failure?.message.contains("horse") == false)
    #expect(place.names == ["test.db"])
  }
}
