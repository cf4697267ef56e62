import FaultVFS
import FileRecording
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import Testing

/// `VACUUM INTO` from GRDB: a sealed copy, or an error.
@Suite struct VacuumTests {
  private let place = SamplePlace()

  private func makePool(
    _ configuration: Configuration = Configuration(), durability: Durability = .full
  ) throws -> DatabasePool {
    let pool = try SealedDatabase.openPool(
      at: place.path("source.db"), key: testKey(), configuration: configuration,
      durability: durability)
    try pool.write { db in
      try db.execute(sql: "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('canary')")
    }
    return pool
  }

  @Test func `vacuum() copies a pool under another key, and the pool stays in use`() throws {
    let pool = try makePool(durability: .normal)
    try SealedDatabase.vacuum(pool, into: place.path("copy.db"), key: testKey(8))
    let copy = try SealedDatabase.openReader(
      at: place.path("copy.db"), key: testKey(8))
    #expect(try copy.read { db in try String.fetchOne(db, sql: "SELECT a FROM t") } == "canary")
    try copy.close()
    #expect(place.names.filter { $0.hasPrefix("copy") || $0.hasPrefix(".") } == ["copy.db"])
    let synchronous = try pool.writeWithoutTransaction { db in
      try db.execute(sql: "INSERT INTO t VALUES ('more')")
      return try Int.fetchOne(db, sql: "PRAGMA synchronous")
    }
    #expect(synchronous == 1)
    for name in place.names {
      #expect(try !place.bytes(name).contains(Array("canary".utf8)), "\(name)")
    }
  }

  @Test func `GRDB's own vacuum(into:) is refused with a hint if the path has no key`() throws {
    let pool = try makePool()
    do {
      try pool.vacuum(into: place.path("copy.db").string)
      Issue.record("GRDB's vacuum(into:) wrote the copy")
    } catch let error as DatabaseError {
      let reason = SealedDatabaseError(explaining: error, in: pool)
      #expect(reason.code == .vacuumTargetRefused)
      #expect(reason.message.contains("copy.db: VACUUM INTO does not write to this file"))
      #expect(reason.hint?.contains("SealedDatabase.vacuum(_:into:key:)") == true)
    }
    #expect(try place.bytes("copy.db").isEmpty)
  }

  @Test func `vacuum() copies an index on a function of the application`() throws {
    var configuration = Configuration()
    configuration.prepareDatabase { db in
      db.add(function: DatabaseFunction("twice", argumentCount: 1, pure: true) { $0[0] })
    }
    let pool = try makePool(configuration)
    try pool.write { db in try db.execute(sql: "CREATE INDEX i ON t (twice(a))") }
    try SealedDatabase.vacuum(pool, into: place.path("copy.db"), key: testKey())
    let copy = try SealedDatabase.openReader(
      at: place.path("copy.db"), key: testKey(), configuration: configuration)
    let indexes = try copy.read { db in
      try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'index'")
    }
    #expect(indexes == ["i"])
  }

  @Test func `vacuum() keeps an existing file, and refuses a plain queue`() throws {
    let pool = try makePool()
    try place.write([1, 2, 3], "copy.db")
    expectError(.alreadyExists) {
      try SealedDatabase.vacuum(pool, into: place.path("copy.db"), key: testKey())
    }
    #expect(try place.bytes("copy.db") == [1, 2, 3])
    let plain = try DatabaseQueue(path: place.path("plain.db").string)
    expectError(.notOnSealedVFS) {
      try SealedDatabase.vacuum(plain, into: place.path("other.db"), key: testKey())
    }
    #expect(!place.names.contains("other.db"))
  }

  @Test func `a power cut at any step of vacuum() leaves the whole copy or none`() throws {
    let pool = try makePool(durability: .normal)
    let recorder = FileRecorder()
    try SealedDatabase.vacuum(
      pool, into: place.path("copy.db"), key: testKey(),
      over: RecordingVFS(recorder).name, fileSystem: RecordingFileSystem(recorder: recorder))
    #expect(recorder.events.count > 5)
    try place.expectWholeCopyOrNone(recorder.events)
  }
}
