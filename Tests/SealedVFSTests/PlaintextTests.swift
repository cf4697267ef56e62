import FaultVFS
import FileLayer
import FileRecording
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// Searches every byte that was ever written for plaintext of the database.
@Suite struct PlaintextTests {
  private static let canaries = ["CanaryValue", "CanaryTable", "CanaryIndex", "CanaryColumn"]

  /// All kinds of work, in all journal modes, with spilled caches and a `VACUUM`.
  private static func work(_ connection: SQLConnection) throws {
    try connection.run("PRAGMA cache_size = 5")
    for mode in ["DELETE", "WAL", "PERSIST", "TRUNCATE", "WAL"] {
      try connection.run("PRAGMA journal_mode = \(mode)")
      try connection.run(
        """
        CREATE TABLE IF NOT EXISTS CanaryTable (id INTEGER PRIMARY KEY, CanaryColumn TEXT, b);
        CREATE INDEX IF NOT EXISTS CanaryIndex ON CanaryTable (CanaryColumn);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO CanaryTable SELECT NULL, 'CanaryValue ' || i, zeroblob(i * 7) FROM n;
        BEGIN; UPDATE CanaryTable SET CanaryColumn = CanaryColumn || '.'; SAVEPOINT s;
        DELETE FROM CanaryTable WHERE id % 3 = 0; ROLLBACK TO s; COMMIT;
        BEGIN; DELETE FROM CanaryTable; ROLLBACK;
        CREATE TEMP TABLE IF NOT EXISTS CanaryTable2 AS SELECT * FROM CanaryTable;
        DELETE FROM CanaryTable WHERE id % 2 = 0; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);
        """)
    }
  }

  /// The canaries in the written bytes, and the number of these bytes.
  private static func search(isSealed: Bool) throws -> (found: Set<String>, byteCount: Int) {
    let place = TemporaryDatabase()
    let recorder = FileRecorder()
    let vfs = RecordingVFS(recorder).name
    let registration = isSealed ? try place.register(over: vfs) : nil
    try withExtendedLifetime(registration) {
      let connection = try SQLConnection(
        place.database.string, vfs: isSealed ? SealedVFS.name : vfs)
      try connection.run("PRAGMA temp_store = MEMORY")
      try work(connection)
    }
    var written = Data()
    for case .write(_, _, let bytes) in recorder.events { written.append(contentsOf: bytes) }
    let found = canaries.filter { written.range(of: Data($0.utf8)) != nil }
    return (Set(found), written.count)
  }

  @Test func `no write contains a value or a name, but a plain file's writes contain each`()
    throws
  {
    let sealed = try Self.search(isSealed: true)
    #expect(sealed.found.isEmpty)
    #expect(sealed.byteCount > 1_000_000)
    #expect(try Self.search(isSealed: false).found == Set(Self.canaries))
  }
}
