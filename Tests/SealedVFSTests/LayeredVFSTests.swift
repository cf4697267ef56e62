import CSQLite
import FaultVFS
import SealedVFS
import SystemPackage
import Testing

/// Another VFS above the sealed one, as SQLite's "vfsstat" and "cksumvfs" are.
@Suite struct LayeredVFSTests {
  /// The layers are made over the sealed VFS, which must exist before the first of them.
  init() throws { try SealedVFS.install() }

  private static func fill(_ connection: SQLConnection, _ mode: String) throws {
    try connection.run("PRAGMA journal_mode = \(mode); PRAGMA wal_autocheckpoint = 0")
    try connection.run("PRAGMA cache_size = 3")
    try connection.fill(100)
    try connection.run("BEGIN; UPDATE t SET text = 'canary' || text")
  }

  @Test(arguments: ["WAL", "DELETE", "TRUNCATE", "PERSIST"])
  func `log and journal are sealed beneath a VFS that passes file controls`(mode: String) throws {
    let place = TemporaryDatabase()
    let layer = LayerVFS(over: SealedVFS.name)
    try place.register()
    let connection = try SQLConnection(place.database.string, vfs: layer.name)
    try Self.fill(connection, mode)
    #expect(place.exists(mode == "WAL" ? place.log : place.journal))
    for (name, bytes) in try place.contents() where !name.hasSuffix("-shm") {
      #expect(!bytes.isEmpty && !bytes.contains(text: "canary"), "\(name) holds plaintext")
    }
    try connection.run("ROLLBACK")
    #expect(try connection.integrity == "ok")
    // The next opening, without the other VFS, reads what is there.
    let killed = try place.afterKill()
    #expect(try killed.query("SELECT count(*) FROM t WHERE text LIKE 'canary%'") == "100")
  }

  @Test(arguments: ["WAL", "DELETE", "TRUNCATE", "PERSIST"])
  func `opening a log or journal beneath a VFS without file controls throws hiddenByVFS`(
    mode: String
  ) throws {
    let place = TemporaryDatabase()
    let layer = LayerVFS(over: SealedVFS.name, passesFileControls: false)
    let registration = try place.register(setsReserve: false)
    let connection = try SQLConnection(place.database.string, vfs: layer.name)
    #expect(throws: SQLFailure.self) { try Self.fill(connection, mode) }
    #expect(registration.fault?.code == .hiddenByVFS)
    #expect(SealedVFS.lastFault?.description.contains("above the sealed one") == true)
    for (_, bytes) in try place.contents() { #expect(!bytes.contains(text: "canary")) }
  }

  @Test
  func `opening a log throws while the sealed file is open, even after its registration ended`()
    throws
  {
    let place = try TemporaryDatabase.made(mode: "WAL")
    let layer = LayerVFS(over: SealedVFS.name, passesFileControls: false)
    try place.register()
    let connection = try SQLConnection(place.database.string, vfs: layer.name)
    place.release()
    #expect(throws: SQLFailure.self) { try connection.run("INSERT INTO t VALUES (1000, 'canary')") }
    #expect(try !place.contents().values.contains { $0.contains(text: "canary") })
  }

  @Test func `opening a sealed database as plain refuses its log and changes no file`() throws {
    let (place, connection) = try TemporaryDatabase.reopened(mode: "WAL")
    try connection.run("PRAGMA wal_autocheckpoint = 0; INSERT INTO t VALUES (1000, 'canary')")
    let killed = try place.afterKill()
    let before = try killed.contents()
    #expect(throws: SQLFailure.self) { try killed.open().run("SELECT * FROM t") }
    #expect(try killed.changes(since: before).isEmpty)
  }

  @Test func `VACUUM INTO through another VFS writes no plain copy`() throws {
    let place = try TemporaryDatabase.made()
    let layer = LayerVFS(over: SealedVFS.name)
    try place.register()
    let connection = try SQLConnection(place.database.string, vfs: layer.name)
    let target = place.directory.appending("copy.db").string
    place.expectFault(.vacuumTargetRefused) { try connection.run("VACUUM INTO '\(target)'") }
    #expect(try place.bytes(place.directory.appending("copy.db")).isEmpty)
  }

  @Test func `log and journal of a plain database stay plain beneath another VFS`() throws {
    let layer = LayerVFS(over: SealedVFS.name)
    for mode in ["WAL", "DELETE"] {
      let place = TemporaryDatabase()
      let connection = try SQLConnection(place.database.string, vfs: layer.name)
      try Self.fill(connection, mode)
      let companion = try place.bytes(mode == "WAL" ? place.log : place.journal)
      #expect(companion.contains(text: "canary"))
      try connection.run("COMMIT")
      #expect(try connection.integrity == "ok")
    }
  }

  @Test func `VACUUM INTO through a VFS without file controls writes no plain copy`() throws {
    let place = try TemporaryDatabase.made()
    let layer = LayerVFS(over: SealedVFS.name, passesFileControls: false)
    try place.register()
    let connection = try SQLConnection(place.database.string, vfs: layer.name)
    let target = place.directory.appending("copy.db")
    place.expectFault(.hiddenByVFS) { try connection.run("VACUUM INTO '\(target)'") }
    #expect(try !place.exists(target) || place.bytes(target).isEmpty)
  }

  @Test func `a plain connection keeps working after a registration of its path`() throws {
    let place = TemporaryDatabase()
    let connection = try place.open()
    try connection.fill(3)
    try place.register()
    try connection.run("UPDATE t SET text = 'x'; PRAGMA journal_mode = WAL; DELETE FROM t")
    #expect(try connection.integrity == "ok")
  }
}
