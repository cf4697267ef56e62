import CSQLite
import FaultVFS
import FileLayer
import FileRecording
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// Runs every kind of SQLite operation on a sealed file, and reads the result back.
@Suite struct WholeSQLTests {
  private let place = TemporaryDatabase()

  static let modes = ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL"]

  @Test(arguments: modes)
  func `every journal mode keeps committed rows with a cache of five pages`(mode: String) throws {
    let (place, connection) = try TemporaryDatabase.connected()
    #expect(try connection.first("PRAGMA journal_mode = \(mode)") == mode.lowercased())
    try connection.run("PRAGMA cache_size = 5")
    try connection.fill(400)
    for round in 0..<3 {
      try connection.run("BEGIN; UPDATE t SET text = text || '\(round)' WHERE id % 2 = 0; COMMIT")
    }
    try connection.run("DELETE FROM t WHERE id > 300; VACUUM")
    if mode != "OFF" {
      try connection.run("BEGIN; DELETE FROM t; SAVEPOINT s; CREATE TABLE gone (a); ROLLBACK")
    }
    connection.close()
    #expect(try place.query("SELECT count(*) FROM t WHERE text LIKE '%012'") == "150")
    #expect(try place.query("SELECT count(*) FROM t") == "300")
    #expect(try place.query("PRAGMA integrity_check") == "ok")
    for (name, bytes) in try place.contents() {
      let isHidden = !bytes.contains(text: "canary") && !bytes.contains(text: "CREATE TABLE")
      #expect(isHidden, "\(name)")
    }
  }

  /// The files after a power cut during a commit over two databases, before the `stop`th removal.
  @Test(arguments: 0..<4)
  func `after a power cut a super-journal restores both databases or neither`(stop: Int) throws {
    let recorder = FileRecorder()
    let vfs = RecordingVFS(recorder)
    let registrations = (
      try place.register(over: vfs.name),
      try SealedVFS.register(key: TemporaryDatabase.key(), at: place.attached, over: vfs.name)
    )
    let connection = try place.open()
    try connection.run("ATTACH '\(place.attached)' AS s; PRAGMA synchronous = EXTRA")
    try connection.run(
      "PRAGMA s.synchronous = EXTRA; CREATE TABLE main.t (a); CREATE TABLE s.u (a)")
    recorder.mark("ready")
    try connection.run(
      "BEGIN; INSERT INTO t VALUES ('canary'); INSERT INTO s.u VALUES ('canary'); COMMIT")
    let events = recorder.events
    let start = try #require(events.firstIndex(of: .mark("ready")))
    let removals = events.indices.filter { index in
      if case .remove = events[index] { index > start } else { false }
    }
    // The super-journal is removed first, which is the commit. The two journals follow.
    try #require(removals.count >= 3)
    if case .remove(let path) = events[removals[0]] {
      #expect(path.lastComponent?.string.contains("-mj") == true)
    }
    let end = stop < removals.count ? removals[stop] : events.count
    let files = DiskReplay(Array(events[..<end]), initialFiles: [:])
      .files(after: .everythingUnsynchronized)
    connection.close()
    // The journals name their super-journal by its full path, so the files are restored in place.
    for name in place.fileNames {
      try FileManager.default.removeItem(atPath: place.directory.appending(name).string)
    }
    for (path, bytes) in files where path.starts(with: place.directory) {
      try place.write(bytes, to: path)
    }
    if stop < 3 { #expect(place.fileNames.contains { $0.hasSuffix("-journal") }) }
    // SQLite itself wrote these pointers, and the super-journal.
    let verified = try [place.database, place.attached].map { path in
      try SealedVFS.verify(path, key: TemporaryDatabase.key())
    }
    let hotCount = verified.count { $0.journal.state == .hot }
    let committedCount = verified.count { $0.journal.lacksSuperJournal }
    #expect(verified[0].isClean && verified[1].isClean)
    #expect(hotCount == (stop == 0 ? 2 : 0))
    #expect(committedCount == max(0, stop == 0 ? 0 : 3 - stop))
    let other = (
      try place.register(), try SealedVFS.register(key: TemporaryDatabase.key(), at: place.attached)
    )
    let reader = try place.open()
    try reader.run("ATTACH '\(place.attached)' AS s")
    let counts = [
      try reader.first("SELECT count(*) FROM t"), try reader.first("SELECT count(*) FROM u"),
    ]
    #expect(counts == (stop == 0 ? ["0", "0"] : ["1", "1"]))
    withExtendedLifetime((registrations, other)) {}
  }

  private func copy(_ source: SQLConnection, to target: SQLConnection) -> Int32 {
    let backup = sqlite3_backup_init(target.pointer, "main", source.pointer, "main")
    while sqlite3_backup_step(backup, 7) == SQLITE_OK {}
    return sqlite3_backup_finish(backup)
  }

  @Test(arguments: [true, false])
  func `the backup API copies a sealed database, sealed or in the clear`(
    isTargetSealed: Bool
  ) throws {
    let (source, target) = (TemporaryDatabase(), TemporaryDatabase())
    try source.makeDatabase(rowCount: 500, mode: "WAL")
    let registration = try source.register()
    let targetRegistration = isTargetSealed ? try target.register() : nil
    let connection = try source.open()
    let copied = try target.open()
    #expect(copy(connection, to: copied) == SQLITE_OK)
    #expect(try copied.rowCount == "500")
    #expect(try copied.integrity == "ok")
    copied.close()
    let bytes = try target.bytes(target.database)
    #expect(bytes.contains(text: "canary") != isTargetSealed)
    if isTargetSealed {
      #expect(try source.header().fileID != target.header().fileID)
    }
    withExtendedLifetime((registration, targetRegistration)) {}
  }

  @Test func `the backup API copies a plain database once its pages have reserved bytes`() throws {
    let (plain, sealed) = (TemporaryDatabase(), TemporaryDatabase())
    let source = try plain.open()
    try source.fill(300)
    do {
      let target = try sealed.connect()
      #expect(copy(source, to: target) != SQLITE_OK)
      #expect(sealed.fault?.code == .reserveInUse)
      #expect(sealed.fault?.hint?.contains("SQLITE_FCNTL_RESERVE_BYTES") == true)
      #expect(try target.first("SELECT count(*) FROM sqlite_master") == "0")
    }
    #expect(SealedConnection.reserveBytes(of: source.pointer) == 40)
    try source.run("VACUUM")
    let target = try sealed.open()
    #expect(copy(source, to: target) == SQLITE_OK)
    #expect(try target.rowCount == "300")
    #expect(try !sealed.bytes(sealed.database).contains(text: "canary"))
  }

  @Test func `VACUUM INTO copies a sealed database to a plain file, and back`() throws {
    let (sealed, plain, back) = (TemporaryDatabase(), TemporaryDatabase(), TemporaryDatabase())
    try sealed.makeDatabase(rowCount: 300)
    try back.register()
    let source = try sealed.connect()
    try source.run("VACUUM INTO 'file:\(plain.database)?vfs=unix'")
    #expect(try plain.bytes(plain.database).contains(text: "canary"))
    let clear = try plain.open()
    #expect(try clear.rowCount == "300")
    #expect(SealedConnection.reserveBytes(of: clear.pointer) == 40)
    try clear.run("VACUUM INTO 'file:\(back.database)?sealed_vacuum_into=1'")
    #expect(try back.open().rowCount == "300")
    #expect(try back.open().integrity == "ok")
    #expect(try !back.bytes(back.database).contains(text: "canary"))
  }

  @Test func `incremental auto-vacuum shrinks the file`() throws {
    let connection = try place.connect(setsReserve: true)
    _ = SealedConnection.reserveBytes(of: connection.pointer)
    try connection.run("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
    try connection.fill(1500)
    let before = try #require(Int(try connection.first("PRAGMA page_count") ?? ""))
    try connection.run("DELETE FROM t WHERE id > 100; PRAGMA incremental_vacuum(20)")
    #expect(try connection.first("PRAGMA page_count") == "\(before - 20)")
    try connection.run("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
    let after = try #require(Int(try connection.first("PRAGMA page_count") ?? ""))
    #expect(after < before / 4)
    #expect(try connection.integrity == "ok")
    connection.close()
    #expect(try place.bytes(place.database).count == after * 4096)
  }

  @Test(arguments: ["DELETE", "WAL"])
  func `exclusive locking locks out other connections`(mode: String) throws {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = \(mode)")
    try connection.fill(200)
    let failure = #expect(throws: SQLFailure.self) { try place.open().rowCount }
    #expect(failure?.primaryCode == SQLITE_BUSY)
    connection.close()
    #expect(try place.query("SELECT count(*) FROM t") == "200")
  }

  @Test func `ten connections read and write in turn`() throws {
    try place.register()
    let connections = try (0..<10).map { _ in try place.open() }
    try connections[0].run("PRAGMA journal_mode = WAL")
    for round in 0..<30 {
      try connections[round % 10].fill(10, from: round * 10 + 1)
      #expect(try connections[(round + 3) % 10].rowCount == "\((round + 1) * 10)")
    }
    #expect(try connections[7].integrity == "ok")
  }

  @Test func `a transaction larger than the cache reads back`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.run("PRAGMA journal_mode = WAL; PRAGMA cache_size = 20; BEGIN")
    try connection.fill(20_000)
    try connection.run("UPDATE t SET text = text || '!'; COMMIT")
    #expect(try place.afterKill().query("SELECT count(*) FROM t WHERE text LIKE '%!'") == "20000")
    #expect(try connection.integrity == "ok")
  }
}

extension TemporaryDatabase {
  /// The path of a second database in the directory.
  fileprivate var attached: FilePath { directory.appending("attached.db") }
}
