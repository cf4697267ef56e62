import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// Runs the same statements on a sealed and a plain file with SQLite, and compares every answer.
///
/// `DATAVAULT_TWIN_SEEDS` sets the number of sequences, 12 by default, of 400 steps each.
@Suite struct DifferentialTests {
  private static let seedCount =
    ProcessInfo.processInfo.environment["DATAVAULT_TWIN_SEEDS"].flatMap(UInt64.init) ?? 12
  private static let stepCount = 400

  /// One of the two sides: a database, and a second one to attach.
  private final class Side {
    let place: TemporaryDatabase
    let vfs: String
    private let synchronous: String
    private var connection: SQLConnection?
    private let registrations: [KeyRegistration]

    init(isSealed: Bool, synchronous: String) throws {
      self.synchronous = synchronous
      place = TemporaryDatabase()
      vfs = isSealed ? SealedVFS.name : "unix"
      let paths = [place.database, place.directory.appending("second.db")]
      registrations =
        try isSealed
        ? paths.map { try SealedVFS.register(key: TemporaryDatabase.key(), at: $0) } : []
    }

    var second: String { place.directory.appending("second.db").string }

    func reopen() throws {
      connection = nil
      let opened = try SQLConnection(place.database.string, vfs: vfs)
      try opened.run("PRAGMA synchronous = \(synchronous); ATTACH '\(second)' AS second")
      connection = opened
    }

    /// The rows, or the error, in words that are the same on both sides.
    func answer(_ sql: String) -> [String] {
      guard let connection else { return [] }
      var rows: [String] = []
      do {
        try connection.each(sql) { rows.append(SQLConnection.text(of: $0)) }
      } catch {
        rows.append("\(error)".replacingOccurrences(of: place.directory.string, with: "DIR"))
      }
      return rows
    }
  }

  @Test(arguments: 0..<Self.seedCount)
  func `random statements give the same answers on a sealed and a plain file`(seed: UInt64) throws {
    let synchronous = ["OFF", "NORMAL", "FULL"][Int(seed % 3)]
    let sealed = try Side(isSealed: true, synchronous: synchronous)
    let plain = try Side(isSealed: false, synchronous: synchronous)
    var statements = (RandomStatements(seed: seed), RandomStatements(seed: seed))
    try sealed.reopen()
    try plain.reopen()
    for number in 0..<Self.stepCount {
      let step = (statements.0.next(second: sealed.second), statements.1.next(second: plain.second))
      guard case (.sql(let ours), .sql(let theirs)) = step else {
        try sealed.reopen()
        try plain.reopen()
        continue
      }
      let answers = (sealed.answer(ours), plain.answer(theirs))
      guard answers.0 == answers.1 else {
        Issue.record("step \(number), \(ours): \(answers.0.prefix(3)), not \(answers.1.prefix(3))")
        return
      }
      if number % 40 == 39 { try compare(sealed, plain, "step \(number)") }
    }
    _ = (sealed.answer("COMMIT"), plain.answer("COMMIT"))
    try sealed.reopen()
    try plain.reopen()
    try compare(sealed, plain, "the end")
  }

  /// Compares integrity, schema and all rows of all databases.
  private func compare(_ sealed: Side, _ plain: Side, _ place: Comment) throws {
    let integrity = sealed.answer("PRAGMA integrity_check")
    #expect(integrity == plain.answer("PRAGMA integrity_check"), place)
    #expect(integrity.contains("'ok'") || integrity.first?.contains("SQLite") == true, place)
    for schema in ["main", "second"] {
      let tables = "SELECT name, sql FROM \(schema).sqlite_schema ORDER BY 1"
      #expect(sealed.answer(tables) == plain.answer(tables), place)
      for number in 0..<4 {
        let rows = "SELECT * FROM \(schema).t\(number)"
        #expect(sealed.answer(rows) == plain.answer(rows), place)
      }
    }
  }
}
