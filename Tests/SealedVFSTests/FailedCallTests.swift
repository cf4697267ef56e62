import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import TestSupport
import Testing

/// Each call of a transaction on the underlying VFS fails once.
///
/// SQLite must report an error or have the right rows.
@Suite struct FailedCallTests {
  struct Mode: Sendable, CustomTestStringConvertible {
    let journal: String
    let synchronous: String
    /// So few that pages reach the disk before the commit, or enough for the whole transaction.
    var cachePageCount = 3
    /// The statement that ends the transaction.
    var end = "COMMIT"
    var testDescription: String {
      "\(end), \(journal), synchronous \(synchronous), \(cachePageCount) pages cached"
    }
  }

  /// MEMORY and OFF are left out: plain SQLite cannot roll back there after a failed write.
  static let modes =
    ["DELETE", "TRUNCATE", "PERSIST", "WAL"].flatMap { journal in
      ["FULL", "NORMAL", "OFF"].map { Mode(journal: journal, synchronous: $0) }
    } + [
      // The commit reads back no frame.
      Mode(journal: "WAL", synchronous: "FULL", cachePageCount: 1000),
      // Every journal record is replayed.
      Mode(journal: "DELETE", synchronous: "FULL", end: "ROLLBACK"),
      Mode(journal: "PERSIST", synchronous: "OFF", end: "ROLLBACK"),
    ]

  /// The calls to fail, each in a run of its own: all, or those of a rare kind and three of each other kind.
  ///
  /// A kind is a call, its file and whether it is at the file's beginning. A distance would leave out the kinds of which
  /// there are few, such as the write of a commit.
  ///
  /// - Parameters:
  ///   - calls: those of a run in which none fails.
  ///   - rareCount: a kind of so many calls is rare.
  private static func sample(
    of calls: [String], _ name: String, rareCount: Int = 3
  ) -> [Int] {
    if Exhaustive.isRequested { return Array(calls.indices) }
    let kinds = Dictionary(grouping: calls.indices) { calls[$0] }
    let chosen = kinds.flatMap { kind, numbers in
      if numbers.count <= rareCount { return numbers }
      return [0, numbers.count - 1, Exhaustive.first("\(name) \(kind)", of: numbers.count)]
        .map { numbers[$0] }
    }
    return Set(chosen).sorted()
  }

  private static let rowCount = 40
  private static let query = "SELECT id || key || body FROM u ORDER BY id"

  /// A database with rows of which two fill a page, closed.
  private static func made(_ mode: Mode) throws -> TemporaryDatabase {
    let place = TemporaryDatabase()
    try place.withConnection { connection in
      try connection.run("PRAGMA journal_mode = \(mode.journal)")
      try connection.run("CREATE TABLE u (id INTEGER PRIMARY KEY, key TEXT UNIQUE, body TEXT)")
      for id in 1...rowCount {
        try connection.run("INSERT INTO u VALUES (\(id), 'k\(id)', hex(zeroblob(800)) || \(id))")
      }
    }
    return place
  }

  /// Changes every page, rolls back a savepoint and a UNIQUE violation, and commits or rolls back.
  ///
  /// - Returns: the rows within the transaction.
  private static func change(_ connection: SQLConnection, _ mode: Mode) throws -> [String] {
    try connection.run("BEGIN; UPDATE u SET body = 'a' || body WHERE id % 2 = 0")
    try connection.run("SAVEPOINT s; DELETE FROM u WHERE id > 20; UPDATE u SET body = 'b' || body")
    try connection.run("ROLLBACK TO s")
    do {
      try connection.run(
        "UPDATE u SET body = 'c' || body, key = iif(id = \(rowCount), 'x1', 'x' || id)")
      Issue.record("the statement does not violate UNIQUE")
    } catch let failure as SQLFailure where failure.primaryCode == SQLITE_CONSTRAINT {}
    try connection.run("INSERT INTO u SELECT 100 + id, 'n' || id, body FROM u WHERE id < 4")
    let rows = try connection.run(query)
    try connection.run(mode.end)
    return rows
  }

  private static func settings(_ mode: Mode) -> String {
    "PRAGMA journal_mode = \(mode.journal); PRAGMA synchronous = \(mode.synchronous); PRAGMA cache_size = \(mode.cachePageCount)"
  }

  @Test(arguments: modes, LayerVFS.FailureCode.allCases)
  func `a transaction with one failed call throws or returns the right rows`(
    mode: Mode, code: LayerVFS.FailureCode
  ) throws {
    let model = try Self.made(mode)
    let before = try model.withConnection { try $0.run(Self.query) }
    let inside = try model.withConnection {
      try $0.run(Self.settings(mode))
      return try Self.change($0, mode)
    }
    #expect(before.count == Self.rowCount && inside.count == Self.rowCount + 3)
    let after = mode.end == "COMMIT" ? inside : before
    let layer = LayerVFS()
    let place = try Self.made(mode)
    let original = try place.contents()
    /// The names of the calls; the one with this number fails.
    func calls(failing call: Int) throws -> [String] {
      try place.restore(original)
      layer.fail(call: call, code)
      var isCommitted = false
      do {
        let connection = try place.connect(over: layer.name)
        try connection.run(Self.settings(mode))
        let rows = try Self.change(connection, mode)
        #expect(rows == inside, "wrong rows after a failed \(layer.failedCall ?? "call") (\(call))")
        isCommitted = true
      } catch is SQLFailure {}
      place.release()
      layer.lift()
      let failed = layer.failedCall ?? "call"
      try place.withConnection { connection in
        let rows = try connection.run(Self.query)
        let isRight = rows == after || !isCommitted && rows == before
        #expect(isRight, "wrong rows on the disk after a failed \(failed) (\(call))")
        #expect(try connection.integrity == "ok", "after a failed \(failed) (\(call))")
      }
      return layer.calls
    }
    let rehearsal = try calls(failing: .max)
    #expect(Set(rehearsal).count > 10)
    for call in Self.sample(of: rehearsal, "\(mode.testDescription) \(code)") {
      _ = try calls(failing: call)
      #expect(layer.failedCall == rehearsal[call])
    }
  }

  @Test(
    arguments: [("DELETE", true), ("PERSIST", true), ("DELETE", false)],
    LayerVFS.FailureCode.allCases)
  func
    `a failed call during a hot rollback is not reported as damage, and the next rollback succeeds`(
      setup: (mode: String, hasHeader: Bool), code: LayerVFS.FailureCode
    ) throws
  {
    let mode = setup.mode
    let written = try TemporaryDatabase.made(rowCount: 200, mode: mode)
    let other = try TemporaryDatabase.made(rowCount: 10, mode: mode)
    let rows = try written.query("SELECT sum(length(text)) FROM t")
    try written.register()
    let killed: TemporaryDatabase
    do {
      let connection = try written.open()
      try other.register()
      // Two databases have a super-journal, at the commit alone. The kill comes before it.
      try connection.run("ATTACH '\(other.database)' AS other; PRAGMA cache_size = 3; BEGIN")
      try connection.run("UPDATE t SET text = text || '!'; UPDATE other.t SET text = 'x'")
      killed = try written.afterKill()
    }
    if !setup.hasHeader {
      try killed.overwrite(killed.database) { $0.replaceSubrange(0..<16, with: Array(1...16)) }
    }
    let original = try killed.contents()
    let layer = LayerVFS()
    func calls(failing call: Int) throws -> [String] {
      try killed.restore(original)
      layer.fail(call: call, code)
      do {
        let found = try killed.connect(over: layer.name).first("SELECT sum(length(text)) FROM t")
        #expect(found == rows, "after a failed \(layer.failedCall ?? "call") (\(call))")
      } catch let failure as SQLFailure {
        if code == .outOfMemory {
          #expect(
            failure.primaryCode == SQLITE_NOMEM, "a failed \(layer.failedCall ?? "") (\(call))")
        }
        #expect(
          killed.fault?.code != .damagedJournal, "a failed \(layer.failedCall ?? "") (\(call))")
      }
      killed.release()
      layer.lift()
      #expect(try killed.query("SELECT sum(length(text)) FROM t") == rows)
      return layer.calls
    }
    let rehearsal = try calls(failing: .max)
    #expect(rehearsal.count > 20)
    for call in Self.sample(of: rehearsal, "\(setup) \(code)", rareCount: 12) {
      _ = try calls(failing: call)
      #expect(layer.failedCall == rehearsal[call])
    }
  }

  @Test(arguments: ["FULL", "OFF"])
  func `ROLLBACK TO after a flipped bit in the journal restores the rows or throws damagedJournal`(
    synchronous: String
  ) throws {
    let place = try Self.made(Mode(journal: "DELETE", synchronous: synchronous))
    for record in 0..<3 {
      // The page number, the page, and the mark behind it.
      for offset in [0, 3, 4 + 17, 4 + 4090, 4 + 4096, 4 + 4099] {
        let connection = try place.connect()
        try connection.run("PRAGMA synchronous = \(synchronous); PRAGMA cache_size = 3; BEGIN")
        let before = try connection.run(Self.query)
        try connection.run("SAVEPOINT s; UPDATE u SET body = 'a' || body")
        try place.overwrite(place.journal) { $0[512 + record * 4104 + offset] ^= 1 }
        do {
          try connection.run("ROLLBACK TO s")
          let rows = try connection.run(Self.query)
          #expect(rows == before, "byte \(offset) of record \(record)")
        } catch is SQLFailure {
          #expect(place.fault?.code == .damagedJournal, "byte \(offset) of record \(record)")
        }
        connection.close()
        if place.exists(place.journal) {
          try place.overwrite(place.journal) { $0[512 + record * 4104 + offset] ^= 1 }
        }
        #expect(try place.query(Self.query) == before.first)
        place.release()
      }
    }
  }
}
