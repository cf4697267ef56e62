import CSQLite
import SealedVFS
import SystemPackage
import Testing
import VaultCrypto

@Suite struct KeyChangeTests {
  /// A database of some pages, left in WAL mode with a log that was not checkpointed.
  private func makeDatabase(_ place: Place) throws {
    let registration = try place.register()
    try withExtendedLifetime(registration) {
      let connection = try place.open()
      try connection.run(
        """
        PRAGMA journal_mode = WAL;
        CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, 'row ' || i FROM n;
        """)
    }
  }

  @Test func `a change of key keeps rows and file id, and only the new key opens`() throws {
    let place = try Place()
    try makeDatabase(place)
    let before = try SealedVFS.inspect(place.database)
    try SealedVFS.reencrypt(
      place.database, from: Place.key(), to: Place.key(Place.otherKeyBytes))
    guard case .sealed(let old) = before,
      case .sealed(let new) = try SealedVFS.inspect(place.database)
    else {
      Issue.record("not sealed")
      return
    }
    #expect(old.fileID == new.fileID)
    let matches = (new.matches(key: Place.key()), new.matches(key: Place.key(Place.otherKeyBytes)))
    #expect(matches == (false, true))
    #expect(place.fileNames == ["test.db"])
    do {
      let registration = try place.register()
      #expect(throws: SQLiteFailure.self) { try place.open() }
      #expect(registration.fault?.code == .wrongKey)
    }
    let registration = try place.register(Place.otherKeyBytes)
    try withExtendedLifetime(registration) {
      let connection = try place.open()
      #expect(try connection.first("SELECT count(*) || ' ' || max(text) FROM t") == "2000 row 999")
      #expect(try connection.first("PRAGMA integrity_check") == "ok")
    }
  }

  @Test func `a change of key is refused while another connection is there`() throws {
    let place = try Place()
    try makeDatabase(place)
    let registration = try place.register()
    let other = try place.open()
    try other.run("SELECT count(*) FROM t")
    let failure = #expect(throws: SealedFileError.self) {
      try SealedVFS.reencrypt(
        place.database, from: Place.key(), to: Place.key(Place.otherKeyBytes))
    }
    #expect(failure?.code == .busy)
    #expect(try other.first("SELECT count(*) FROM t") == "2000")
    withExtendedLifetime(registration) {}
  }
}
