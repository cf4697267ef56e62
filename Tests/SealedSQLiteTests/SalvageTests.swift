import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@Suite struct SalvageTests {
  /// The result of salvaging changed bytes.
  struct Outcome {
    var report: SalvageReport
    var rows: [String: [String: String]]
    var lostAndFound: [Row]
    var integrity: String?
    var schema: [String]
    var settings: [String]
    var sequence: [String: Int]
  }

  static func salvage(_ bytes: [UInt8], log: [UInt8]? = nil) throws -> Outcome {
    let directory = ScratchFolder()
    let source = FilePath(try directory.file("damaged.db", bytes))
    let destination = directory("saved.db")
    if let log { try directory.file("damaged.db-wal", log) }
    let report = try SealedDatabase.salvage(
      from: source, key: testKey(), to: destination, newKey: testKey(9))
    #expect(try directory.bytes("damaged.db") == bytes)
    let logNames = log == nil ? [] : ["damaged.db-wal"]
    #expect(try directory.names() == ["damaged.db"] + logNames + ["saved.db"])
    if let log { #expect(try directory.bytes("damaged.db-wal") == log) }
    let reader = try SealedDatabase.openReader(at: destination, key: testKey(9))
    return try reader.read { db in
      Outcome(
        report: report, rows: try SalvageFixture.dump(db),
        lostAndFound: try report.lostAndFoundName.map {
          try Row.fetchAll(db, sql: "SELECT * FROM \($0)")
        } ?? [],
        integrity: try String.fetchOne(db, sql: "PRAGMA integrity_check"),
        schema: try SalvageFixture.schema(db), settings: try SalvageFixture.settings(db),
        sequence: try db.tableExists("sqlite_sequence")
          ? Dictionary(
            uniqueKeysWithValues: Row.fetchAll(db, sql: "SELECT * FROM sqlite_sequence").map {
              ($0[0], $0[1])
            }) : [:])
    }
  }

  static func damaged(_ bytes: [UInt8], pages: [Int]) -> [UInt8] {
    var bytes = bytes
    for page in pages { bytes[(page - 1) * 4096 + 1234] ^= 0x40 }
    return bytes
  }

  /// The rows that SQLite itself can no longer read, each queried separately.
  private func rowsThatSQLiteLoses(
    _ fixture: SalvageFixture, _ bytes: [UInt8], in table: String
  ) throws -> Set<String> {
    let directory = ScratchFolder()
    let path = FilePath(try directory.file("damaged.db", bytes))
    let reader = try SealedDatabase.openReader(at: path, key: testKey())
    return try reader.unsafeRead { db in
      let columns = SalvageFixture.columns[table, default: []].map { "hex(\"\($0)\")" }
      let statement = try db.makeStatement(
        sql: "SELECT \(columns.joined(separator: ",")) FROM \(table) "
          + (table == "pairs" ? "WHERE a = ?1 AND b = ?2" : "NOT INDEXED WHERE _rowid_ = ?1"))
      return Set(
        fixture.rows[table, default: [:]].keys.filter { key in
          // The keys of pairs: a quote, a of 42 characters, b, a quote.
          let arguments: StatementArguments =
            table == "pairs"
            ? [String(key.prefix(43).dropFirst()), Int(key.dropFirst(43).dropLast())]
            : [Int64(key)]
          do { return try Row.fetchOne(statement, arguments: arguments) == nil } catch {
            return true
          }
        })
    }
  }

  @Test(arguments: SalvageFixture.Variant.allCases)
  func `a salvage of an intact database is complete`(variant: SalvageFixture.Variant) throws {
    let fixture = try variant.fixture()
    let outcome = try Self.salvage(fixture.bytes)
    #expect(outcome.rows == fixture.rows)
    #expect(outcome.report.isComplete, "\(outcome.report)")
    #expect(outcome.integrity == "ok")
    #expect(outcome.schema == fixture.schema)
    #expect(outcome.settings == fixture.settings)
    #expect(outcome.sequence == ["counted": 152])
  }

  @Test(arguments: [SalvageFixture.Variant.plain, .mapped])
  func `with one page damaged, a salvage has exactly the rows that do not need it`(
    variant: SalvageFixture.Variant
  ) throws {
    let fixture = try variant.fixture()
    #expect(fixture.pages.count >= 55)
    // Of each kind at least one: there are few overflow pages.
    let kinds = Dictionary(grouping: fixture.pages.dropFirst()) { "\($0.table), \($0.kind)" }
    for page in kinds.values.flatMap({ Exhaustive.sample(of: $0, oneIn: 7) }) {
      let bytes = Self.damaged(fixture.bytes, pages: [page.number])
      let isData = SalvageFixture.tables.contains(page.table)
      let unreadable = isData ? try rowsThatSQLiteLoses(fixture, bytes, in: page.table) : []
      let outcome = try Self.salvage(bytes)
      let place: Comment = "\(page)\n\(outcome.report)"
      #expect(outcome.integrity == "ok", place)
      if page.table == "sqlite_schema" { continue }
      #expect(outcome.report.isSchemaWhole, place)
      #expect(outcome.report.lostAndFoundRowCount == 0, place)
      for table in SalvageFixture.tables {
        let (old, new) = (fixture.rows[table] ?? [:], outcome.rows[table] ?? [:])
        let isWrong = new.contains { old[$0.key] != $0.value }
        #expect(!isWrong, "an invented row of \(table): \(place)")
        let lost = Set(old.keys).subtracting(new.keys)
        let report = try #require(outcome.report.tables.first { $0.name == table })
        #expect(report.rowsCopied == new.count)
        switch (page.table == table, page.kind) {
        case (true, _) where table == "pairs":
          // Every page of an index b-tree has rows. SQLite also fails at some of its neighbours.
          #expect(lost.count == page.cellCount, place)
          #expect(lost.isSubset(of: unreadable), place)
          #expect(report.rowsLostAtLeast == 1, place)
        case (true, "leaf"), (true, "overflow"):
          #expect(lost == unreadable, place)
          #expect(!lost.isEmpty && report.rowsLostAtLeast >= 1, place)
          #expect(report.rowsLostAtLeast <= lost.count, place)
          if table != "pairs" {
            let isCovered = lost.allSatisfy { key in
              report.lostRanges.contains { range in
                Int64(key).map { $0 >= range.first ?? .min && $0 <= range.last ?? .max } ?? false
              }
            }
            #expect(isCovered, place)
          }
        default:
          #expect(lost.isEmpty, "\(table) \(place)")
          #expect(report.rowsLostAtLeast == 0, place)
        }
      }
    }
  }

  @Test(arguments: SalvageFixture.Variant.allCases)
  func `with page 1 damaged, a salvage has every row`(variant: SalvageFixture.Variant) throws {
    let fixture = try variant.fixture()
    let outcome = try Self.salvage(Self.damaged(fixture.bytes, pages: [1]))
    #expect(outcome.integrity == "ok")
    #expect(!outcome.report.isSchemaWhole && !outcome.report.areSettingsKept)
    if variant == .longSchema {
      // The schema has other pages, too: only page 1, which leads to them, is lost.
      #expect(outcome.rows == fixture.rows)
    } else {
      let rowIDTables = fixture.rows.filter { $0.key != "pairs" }
      let expected = rowIDTables.values.map(\.count).reduce(0, +)
      let found = outcome.lostAndFound.filter { $0["id"] != nil }
      // sqlite_sequence is a table, too.
      #expect(found.count == expected + 1)
      let people = Set(fixture.rows["people", default: [:]].keys)
      let root =
        found.first { String.fromDatabaseValue($0["c1"])?.hasPrefix("name ") == true }?["rootpgno"]
        as Int?
      #expect(
        variant == .utf16
          || Set(found.filter { $0["rootpgno"] == root }.map { "\($0["id"] as Int64)" }) == people)
    }
  }
}
