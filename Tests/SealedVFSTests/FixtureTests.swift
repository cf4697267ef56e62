import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// Stored databases of format version 1: `Fixtures/databases/README.md`.
///
/// `DATAVAULT_MAKE_FIXTURES=1` creates missing ones and changes no existing one.
@Suite(.serialized) struct FixtureTests {
  private static let makesMissing =
    ProcessInfo.processInfo.environment["DATAVAULT_MAKE_FIXTURES"] == "1"

  @Test(.enabled(if: makesMissing, "makes missing fixtures on demand"))
  func `missing fixtures are created`() throws {
    for fixture in DatabaseFixture.positives + DatabaseFixture.negatives {
      let file = DatabaseFixture.folder.appending("\(fixture.name).db").string
      if FileManager.default.fileExists(atPath: file) { continue }
      if let base = (DatabaseFixture.positives.first { $0.name == fixture.base }) {
        let place = try base.place()
        try fixture.change?(place)
        try fixture.store(place)
      } else {
        try fixture.store(made(fixture.name))
      }
    }
  }

  /// Creates the files of a fixture that has no base.
  private func made(_ name: String) throws -> TemporaryDatabase {
    let place = TemporaryDatabase()
    let connection = try place.connect(newFileID: Array("fixture0".utf8))
    switch name {
    case "rows": try connection.fill(60)
    case "log-not-checkpointed":
      try connection.run("PRAGMA journal_mode = WAL")
      try connection.fill(60)
      try connection.run("PRAGMA wal_checkpoint(TRUNCATE)")
      for commit in 0..<3 { try connection.fill(10, from: 61 + commit * 10) }
    case "hot-journal":
      try connection.fill(150)
      try connection.run("PRAGMA cache_size = 5; BEGIN; UPDATE t SET text = 'x' || text")
    default:
      try connection.run("PRAGMA cache_size = 5; BEGIN")
      try connection.fill(100)
    }
    return try place.afterKill()
  }

  @Test(arguments: DatabaseFixture.positives + DatabaseFixture.forged)
  func `a stored database opens with all its rows`(_ fixture: DatabaseFixture) throws {
    let place = try fixture.place()
    let connection = try place.connect()
    let hasTable = try connection.first("SELECT count(*) FROM sqlite_master") != "0"
    let count = hasTable ? try connection.rowCount : "0"
    #expect(fixture.outcome == .rows(Int(count ?? "") ?? -1))
    #expect(try connection.integrity == "ok")
  }

  @Test(arguments: DatabaseFixture.negatives)
  func `a stored database with one fault is refused with that fault's code`(
    _ fixture: DatabaseFixture
  ) throws {
    let place = try fixture.place()
    let before = try place.contents()
    #expect(!before.isEmpty)
    #expect(throws: SQLFailure.self) {
      try place.connect().run("SELECT sum(length(text)) FROM t")
    }
    guard case .refused(let code, let page) = fixture.outcome else { return }
    #expect(place.fault?.code == code)
    if let page { #expect(place.fault?.pageNumber == page) }
    if code != .damagedJournal {
      #expect(try place.changes(since: before).isEmpty)
    }
  }

  @Test(
    .enabled(if: ReferenceDatabaseReader.isAvailable, ReferenceDatabaseReader.skipReason),
    arguments: DatabaseFixture.positives + DatabaseFixture.forged)
  func `the reference reader finds the same rows in each fixture`(
    _ fixture: DatabaseFixture
  ) throws {
    let answer = try ReferenceDatabaseReader.rowCount(of: fixture.place())
    #expect(fixture.outcome == .rows(Int(answer) ?? -1), "\(answer)")
  }

  @Test(
    .enabled(if: ReferenceDatabaseReader.isAvailable, ReferenceDatabaseReader.skipReason),
    arguments: DatabaseFixture.negatives)
  func `the reference reader refuses the same fixtures`(_ fixture: DatabaseFixture) throws {
    // The reader ignores a journal whose first byte states that it is not one.
    if fixture.name == "journal-first-byte" { return }
    let answer = try ReferenceDatabaseReader.rowCount(of: fixture.place())
    #expect(answer.hasPrefix("refused"), "\(answer)")
  }

  @Test(.enabled(if: ReferenceDatabaseReader.isAvailable, ReferenceDatabaseReader.skipReason))
  func `the reference reader reads a database that was just written`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    try connection.run("PRAGMA journal_mode = WAL; PRAGMA cache_size = 5; BEGIN")
    try connection.fill(300)
    try connection.run("UPDATE t SET text = text || '.'; COMMIT; DELETE FROM t WHERE id > 280")
    #expect(try ReferenceDatabaseReader.rowCount(of: place.afterKill()) == "280")
  }
}
