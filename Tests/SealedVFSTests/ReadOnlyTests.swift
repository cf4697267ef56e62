import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import TestSupport
import Testing

/// Connections that cannot write: by flag, by URI, by the file's or the directory's permissions.
@Suite struct ReadOnlyTests {
  @Test(arguments: ["DELETE", "WAL"])
  func `a read-only connection reads, and a write fails with SQLITE_READONLY`(mode: String) throws {
    let place = try TemporaryDatabase.made(mode: mode)
    let before = try place.contents()
    try place.register()
    let reader = try place.open(flags: SQLITE_OPEN_READONLY)
    #expect(try reader.rowCount == "300")
    #expect(try reader.integrity == "ok")
    let failure = #expect(throws: SQLFailure.self) { try reader.run("DELETE FROM t") }
    #expect(failure?.primaryCode == SQLITE_READONLY)
    reader.close()
    let isSame = try place.contents()["test.db"] == before["test.db"]
    #expect(isSame)
  }

  @Test(arguments: ["DELETE", "WAL"])
  func `an immutable file is read without log, journal or lock`(mode: String) throws {
    let place = try TemporaryDatabase.made(mode: mode)
    try place.register()
    let uri = "file:\(place.database)?immutable=1"
    let reader = try SQLConnection(uri, flags: SQLITE_OPEN_READONLY)
    #expect(SealedConnection.vfsName(of: reader.pointer) == "sealed")
    #expect(try reader.rowCount == "300")
    #expect(place.fileNames == ["test.db"])
  }

  /// The state of a database in a directory that cannot be written.
  enum Situation: String, CaseIterable {
    case journalMode, closedLog, hotLog, hotLogWithIndex, hotJournal
  }

  /// Creates the files of a situation in `place`.
  private static func make(_ situation: Situation, in place: TemporaryDatabase, isSealed: Bool)
    throws
  {
    let source = TemporaryDatabase()
    if isSealed { try source.register() }
    let connection = try source.open()
    try connection.run(
      "PRAGMA journal_mode = \(situation == .journalMode || situation == .hotJournal ? "DELETE" : "WAL")"
    )
    try connection.run("PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 5")
    try connection.fill(300)
    switch situation {
    case .journalMode, .closedLog: connection.close()
    case .hotLog, .hotLogWithIndex: try connection.fill(100, from: 1000)
    case .hotJournal: try connection.run("BEGIN; UPDATE t SET text = 'gone'")
    }
    try source.copy(to: place)
    if situation == .hotLogWithIndex {
      try Program.copy(source.database.string + "-shm", to: place.database.string + "-shm")
    }
  }

  /// The answer to a reader without write permission: rows, or SQLite's result code.
  private static func answer(_ path: String, _ options: String, isSealed: Bool) -> String {
    let registration =
      isSealed
      ? try? SealedVFS.register(key: TemporaryDatabase.key(), at: FilePath(path)) : nil
    defer { withExtendedLifetime(registration) {} }
    do {
      let reader = try SQLConnection("file:\(path)\(options)", flags: SQLITE_OPEN_READWRITE)
      let rows = try reader.first("SELECT count(*) FROM t") ?? "none"
      do {
        try reader.run("INSERT INTO t VALUES (5000, 'x')")
        return "\(rows) written"
      } catch let failure as SQLFailure { return "\(rows) \(failure.primaryCode)" }
    } catch let failure as SQLFailure {
      return "refused \(failure.primaryCode)"
    } catch {
      return "\(error)"
    }
  }

  @Test(arguments: Situation.allCases, ["", "?immutable=1"])
  func `a sealed database in a read-only directory behaves like a plain one`(
    situation: Situation, options: String
  ) async throws {
    let (plain, sealed) = (TemporaryDatabase(), TemporaryDatabase())
    for place in [plain, sealed] {
      try Self.make(situation, in: place, isSealed: place === sealed)
      for name in place.fileNames {
        chmod(place.directory.appending(name).string, 0o444)
      }
      chmod(place.directory.string, 0o555)
    }
    defer { for place in [plain, sealed] { chmod(place.directory.string, 0o755) } }
    let before = try sealed.contents()
    // A database in rollback mode is readable as it is; a log needs a place for its index.
    let mustRead = situation == .journalMode || situation == .closedLog && !options.isEmpty
    let (plainPath, sealedPath) = (plain.database.string, sealed.database.string)
    await #expect(processExitsWith: .success) {
      [
        plainPath = plainPath as String, sealedPath = sealedPath as String,
        options = options as String,
        mustRead = mustRead as Bool
      ] in
      // Permissions do not restrict root. In a separate process root can become the user 65534.
      if getuid() == 0 { #expect(setuid(65534) == 0) }
      let expected = ReadOnlyTests.answer(plainPath, options, isSealed: false)
      let found = ReadOnlyTests.answer(sealedPath, options, isSealed: true)
      #expect(found == expected)
      #expect(!found.contains("written"))
      if mustRead { #expect(found == "300 8") }
    }
    #expect(try sealed.changes(since: before).isEmpty)
  }
}
