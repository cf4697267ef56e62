import SealedVFS
import Testing

/// SealedSQLite reads SQLCipher's databases, and SQLCipher reads those of SealedSQLite.
@Suite(.enabled(if: ReferenceSQLCipherReader.isAvailable, ReferenceSQLCipherReader.skipReason))
struct SQLCipherReferenceTests {
  private let place = SamplePlace()

  @Test(arguments: [
    ("passphrase \u{E9} \u{4E16} \"quoted\"", []), (SamplePlace.rawKey, ["full"]),
    (SamplePlace.rawKeyAndSalt, ["incremental"]), (SamplePlace.rawKey, ["utf16"]),
    (SamplePlace.rawKey, ["wal"]),
  ])
  func `a database is the same after a copy from SQLCipher to sealed and back`(
    key: String, options: [String]
  ) throws {
    try ReferenceSQLCipherReader.write(place.path("theirs.db"), key: key, options)
    let before = try place.bytes("theirs.db")
    try place.copy(sqlcipher: "theirs.db", key: key, "sealed.db", .sealed)
    let isUntouched = try place.bytes("theirs.db") == before
    #expect(isUntouched)
    try place.copy("sealed.db", .sealed, sqlcipher: "ours.db", key: key)
    let (theirs, ours) = (
      try ReferenceSQLCipherReader.read(place.path("theirs.db"), key: key),
      try ReferenceSQLCipherReader.read(place.path("ours.db"), key: key)
    )
    #expect(ours == theirs)
    #expect(ours.contains(#""integrity": "ok""#) && ours.contains(#""cipherIntegrity": 0"#))
    if key == SamplePlace.rawKeyAndSalt {
      #expect(try place.bytes("ours.db").prefix(16) == [UInt8](repeating: 0x5A, count: 16)[...])
    }
  }

  @Test func `SQLCipher can write to a database that copy() made`() throws {
    try place.makePlain("plain.db", rowCount: 40)
    try place.copy("plain.db", .plain, sqlcipher: "ours.db", key: "correct horse")
    // The reference reader creates its own tables beside the existing ones; f5 and fts4 stay.
    try ReferenceSQLCipherReader.write(place.path("ours.db"), key: "correct horse", ["wal"])
    let text = try ReferenceSQLCipherReader.read(place.path("ours.db"), key: "correct horse")
    // SQLCipher's newer SQLite reports the row that violates a CHECK, which was copied unchanged.
    #expect(text.contains("CHECK constraint failed") && text.contains(#""cipherIntegrity": 0"#))
    #expect(text.contains(#""count": 1716"#))
    try place.copy(sqlcipher: "ours.db", key: "correct horse", "end.db", .plain)
    #expect(try place.dump("end.db").count > 4000)
  }

  @Test func `copy() refuses a database that SQLCipher has not closed`() throws {
    try ReferenceSQLCipherReader.write(
      place.path("theirs.db"), key: SamplePlace.rawKey, ["small", "hot-wal"])
    let (database, log) = (try place.bytes("theirs.db"), try place.bytes("theirs.db-wal"))
    expectError(.notClosed) {
      try place.copy("theirs.db", .sqlcipher4, "sealed.db", .sealed)
    }
    let isSame =
      try place.bytes("theirs.db") == database && place.bytes("theirs.db-wal") == log
    #expect(isSame)
    #expect(!place.names.contains { $0.hasPrefix("sealed") || $0.hasPrefix(".") })
  }
}
