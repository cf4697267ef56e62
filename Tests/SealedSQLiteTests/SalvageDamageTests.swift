import FaultVFS
import FileRecording
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@testable import SealedSalvage

/// Damage beyond one page: many pages, a cut file, a log, invalid pages that authenticate, a kill.
@Suite struct SalvageDamageTests {
  /// Expects each row to be one of the old database, in its own table or in the lost and found.
  private func expectNothingInvented(
    _ outcome: SalvageTests.Outcome, _ fixture: SalvageFixture, _ comment: Comment
  ) {
    for (table, rows) in outcome.rows {
      let isWrong = rows.contains { fixture.rows[table]?[$0.key] != $0.value }
      #expect(!isWrong, "\(table): \(comment)")
    }
    #expect(outcome.integrity == "ok", comment)
  }

  @Test(arguments: [2, 3, 6, 12, 30])
  func `a salvage invents no row, and loses none on an intact page`(count: Int) throws {
    for variant in [SalvageFixture.Variant.plain, .mapped] {
      let fixture = try variant.fixture()
      var random = SeededRandom(seed: UInt64(count))
      for _ in 0..<(Exhaustive.isRequested ? 4 : 1) {
        let pages = fixture.pages.filter { $0.number > 1 }.shuffled(using: &random).prefix(count)
        let outcome = try SalvageTests.salvage(
          SalvageTests.damaged(fixture.bytes, pages: pages.map(\.number)))
        let comment: Comment = "\(variant) \(pages.map(\.number))"
        expectNothingInvented(outcome, fixture, comment)
        // The rows on damaged leaves and damaged overflow pages are lost; all others must be
        // copied.
        let lost = fixture.rows["people", default: [:]].count - outcome.rows["people"]!.count
        let damaged = pages.filter { $0.table == "people" && $0.kind == "leaf" }
          .reduce(0) { $0 + $1.cellCount }
        #expect(lost >= damaged, comment)
        if outcome.report.lostAndFoundRowCount == 0 { #expect(lost == damaged, comment) }
        let isLacking = fixture.rows.contains { table, rows in
          rows.count > outcome.rows[table, default: [:]].count
        }
        if isLacking { #expect(!outcome.report.isComplete, comment) }
      }
    }
  }

  @Test(arguments: [SalvageFixture.Variant.plain, .mapped])
  func `a salvage that lost a table's root and a leaf reports that rows can be missing`(
    variant: SalvageFixture.Variant
  ) throws {
    let fixture = try variant.fixture()
    let pages = fixture.pages.filter { $0.table == "people" }
    let root = try #require(pages.first { $0.kind == "internal" }).number
    for leaf in Exhaustive.sample(of: pages.filter { $0.kind == "leaf" }, oneIn: 5) {
      let outcome = try SalvageTests.salvage(
        SalvageTests.damaged(fixture.bytes, pages: [root, leaf.number]))
      let people = try #require(outcome.report.tables.first { $0.name == "people" })
      #expect(people.lostRanges.count == 1, "\(leaf)")
      #expect(!outcome.report.isComplete, "\(leaf)")
    }
  }

  /// A database without the roots of its tables, and the rows of before.
  private func rootless(
    _ statements: [String]
  ) throws -> (bytes: [UInt8], rows: [String: [String: String]]) {
    let folder = ScratchFolder()
    let pool = try SealedDatabase.openPool(
      at: folder("a.db"), key: testKey(), creation: .ifAbsent(autoVacuum: .none))
    try pool.writeWithoutTransaction { db in
      for statement in statements { try db.execute(sql: statement) }
      _ = try db.checkpoint(.truncate)
    }
    let (rows, roots) = try pool.read { db in
      (
        try SalvageFixture.dump(db),
        try Int.fetchAll(db, sql: "SELECT rootpage FROM sqlite_schema WHERE type = 'table'")
      )
    }
    try pool.close()
    return (SalvageTests.damaged(try folder.bytes("a.db"), pages: roots), rows)
  }

  private static func filled(_ table: String) -> [String] {
    [
      "CREATE TABLE \(table) (a INTEGER PRIMARY KEY, b, c, d)",
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
      INSERT INTO \(table) SELECT i, '\(table) ' || i, hex(zeroblob(100)), i FROM n
      """,
    ]
  }

  @Test func `a salvage puts rows that could be of two tables into none of them`() throws {
    let (bytes, rows) = try rootless(Self.filled("made") + Self.filled("counted"))
    let outcome = try SalvageTests.salvage(bytes)
    for (table, found) in outcome.rows {
      #expect(!found.contains { rows[table]?[$0.key] != $0.value }, "\(table)")
    }
    #expect(outcome.report.lostAndFoundRowCount == 400)
  }

  @Test func `a salvage brings no deleted row back`() throws {
    let (bytes, rows) = try rootless(
      ["PRAGMA secure_delete = OFF"] + Self.filled("made")
        + ["DELETE FROM made WHERE a BETWEEN 50 AND 150"])
    let outcome = try SalvageTests.salvage(bytes)
    #expect(rows["made"]?.count == 99)
    #expect(outcome.rows == rows)
    #expect(outcome.report.lostAndFoundRowCount == 0)
  }

  @Test func `lost counters of AUTOINCREMENT are reported`() throws {
    let fixture = try SalvageFixture.Variant.plain.fixture()
    let page = try #require(fixture.pages.first { $0.table == "sqlite_sequence" })
    let outcome = try SalvageTests.salvage(
      SalvageTests.damaged(fixture.bytes, pages: [page.number]))
    #expect(outcome.rows == fixture.rows)
    #expect(outcome.report.notRecreated.map(\.name) == ["sqlite_sequence"])
    #expect(!outcome.report.isComplete)
  }

  @Test func `a lost schema page loses the names of its tables, but not their rows`() throws {
    let fixture = try SalvageFixture.Variant.longSchema.fixture()
    let schemaPages = fixture.pages.filter { $0.table == "sqlite_schema" && $0.number > 1 }
    #expect(schemaPages.count >= 2)
    for page in schemaPages {
      let outcome = try SalvageTests.salvage(
        SalvageTests.damaged(fixture.bytes, pages: [page.number]))
      expectNothingInvented(outcome, fixture, "\(page)")
      #expect(!outcome.report.isSchemaWhole)
      let total = fixture.rows.values.reduce(0) { $0 + $1.count } + 60
      // sqlite_sequence, and entries of indexes whose CREATE is lost, can be there, too.
      #expect(outcome.report.rowsCopied >= total, "\(page)")
    }
  }

  @Test func `a salvage of a cut file has the rows before the cut`() throws {
    let fixture = try SalvageFixture.Variant.plain.fixture()
    for pageCount in stride(from: 1, to: fixture.bytes.count / 4096, by: 9) {
      let outcome = try SalvageTests.salvage(Array(fixture.bytes[..<(pageCount * 4096 + 100)]))
      expectNothingInvented(outcome, fixture, "\(pageCount)")
      let whole = fixture.pages
        .filter { $0.table == "people" && $0.kind == "leaf" && $0.number <= pageCount }
        .reduce(0) { $0 + $1.cellCount }
      let found = outcome.rows["people"]?.count ?? 0
      #expect(found + outcome.report.lostAndFoundRowCount >= whole, "\(pageCount)")
    }
  }

  @Test func `a salvage uses a log's commits up to its damage, also for damaged pages`() throws {
    let key = testKey()
    let directory = ScratchFolder()
    let path = directory("log.db")
    let pool = try SealedDatabase.openPool(at: path, key: key)
    try pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA wal_autocheckpoint = 0; CREATE TABLE made (a, b, c, d)")
      for index in 0..<40 {
        try db.execute(sql: "INSERT INTO made VALUES (\(index), hex(zeroblob(300)), 0, 0)")
        if index == 19 { _ = try db.checkpoint(.truncate) }
      }
    }
    for suffix in ["", "-wal"] {
      try Program.copy(path.string + suffix, to: directory.path("copy\(suffix)"))
    }
    let (file, log) = (try directory.bytes("copy"), try directory.bytes("copy-wal"))
    #expect(try SalvageTests.salvage(file, log: log).rows["made"]?.count == 40)
    var damaged = log
    damaged[32 + (log.count - 32) / 4120 / 2 * 4120 + 500] ^= 1
    let half = try #require(try SalvageTests.salvage(file, log: damaged).rows["made"]?.count)
    #expect(half >= 25 && half < 35)
    let pages = Array(1...file.count / 4096)
    let repaired = try SalvageTests.salvage(SalvageTests.damaged(file, pages: pages), log: log)
    #expect(repaired.rows["made"]?.count ?? 0 >= 20 || repaired.report.lostAndFoundRowCount >= 20)
  }

  @Test func `a power cut at any step leaves the salvaged database whole or absent`() throws {
    let fixture = try SalvageFixture.Variant.plain.fixture()
    let directory = ScratchFolder()
    let source = FilePath(try directory.file("a.db", fixture.bytes))
    let destination = directory("b.db")
    let recorder = FileRecorder()
    let vfs = RecordingVFS(recorder)
    _ = try SealedVFS.salvage(
      from: source, key: testKey(), to: destination, newKey: testKey(9),
      over: vfs.name, fileSystem: RecordingFileSystem(recorder: recorder))
    let whole = try directory.bytes("b.db")
    let events = recorder.events
    let renamed = events.lastIndex {
      if case .rename = $0 { true } else { false }
    }
    #expect(events.count > 50)
    for count in [0, 10, events.count / 2] + Array((renamed ?? 0) - 2...events.count) {
      let replay = DiskReplay(Array(events.prefix(count)), initialFiles: [source: fixture.bytes])
      for cut in [replay.files(after: .nothing), replay.files(after: .everythingUnsynchronized)] {
        #expect(cut[destination] == nil || cut[destination] == whole, "after \(count) steps")
        #expect(cut[source] == fixture.bytes)
      }
      if count == events.count {
        #expect(replay.files(after: .everythingUnsynchronized)[destination] == whole)
      }
    }
    let writesSource = events.contains { event in
      if case .write(source, _, _) = event { true } else { false }
    }
    #expect(!writesSource)
  }

  /// The opened pages of a fixture.
  private func openedPages(_ fixture: SalvageFixture) throws -> [[UInt8]] {
    let directory = ScratchFolder()
    let path = FilePath(try directory.file("a.db", fixture.bytes))
    let image = try SealedImage(path, key: testKey())
    return (1...image.pageCount).map { image.page($0) ?? Array(repeating: 0, count: 4096) }
  }

  /// Pages that were not authenticated.
  private static func source(_ pages: [[UInt8]]) -> PageSource {
    PageSource(pageCount: UInt32(pages.count)) { number in
      number >= 1 && number <= pages.count ? pages[Int(number) - 1] : nil
    }
  }

  @Test func `an invalid row of the schema with the smallest rowid does not end a salvage`() throws
  {
    var pages = try openedPages(SalvageFixture.Variant.plain.fixture())
    // A leaf with one cell: a record of one byte, which has no values, under the rowid -2^63.
    pages[0].replaceSubrange(100..<110, with: [13, 0, 0, 0, 1, 0, 0, 0, 0x0F, 0xA0])
    let rowID = [0xC0] + [UInt8](repeating: 0x80, count: 7) + [0]
    pages[0].replaceSubrange(0x0FA0..<0x0FAB, with: [1] + rowID + [1])
    let directory = ScratchFolder()
    let database = try NewDatabase(at: directory("new.db"), key: testKey())
    var salvager = Salvager(Self.source(pages), into: database)
    #expect(try !salvager.run().isSchemaWhole)
  }

  @Test func `authentic but invalid pages neither crash nor stall a salvage`() throws {
    var random = SeededRandom(seed: 0x5EED)
    for variant in [SalvageFixture.Variant.plain, .mapped] {
      let pages = try openedPages(variant.fixture())
      for round in 0..<25 {
        var changed = pages
        for _ in 0..<Int.random(in: 1...40, using: &random) {
          let page = Int.random(in: 0..<pages.count, using: &random)
          switch Int.random(in: 0..<5, using: &random) {
          case 0: changed[page] = pages.randomElement(using: &random) ?? []
          case 1: changed[page][Int.random(in: 0..<12, using: &random)] = random.byte
          case 2:
            // Page numbers of child pages and of overflow pages, some of them the page's own.
            let offset = Int.random(in: 0..<4050, using: &random)
            changed[page].replaceSubrange(
              offset..<offset + 4, with: [0, 0, 0, UInt8.random(in: 0...80, using: &random)])
          case 3:
            let offset = Int.random(in: 0..<4040, using: &random)
            for index in offset..<offset + 9 { changed[page][index] = 0xFF }
          default: changed[page][Int.random(in: 0..<4096, using: &random)] = random.byte
          }
        }
        let directory = ScratchFolder()
        let database = try NewDatabase(at: directory("new.db"), key: testKey())
        var salvager = Salvager(Self.source(changed), into: database)
        let report = try salvager.run()
        #expect(try database.rows("PRAGMA integrity_check") == [["ok"]], "round \(round)")
        #expect(report.rowsCopied < 20_000)
      }
    }
  }
}

extension SeededRandom {
  fileprivate var byte: UInt8 { mutating get { UInt8(truncatingIfNeeded: next() >> 20) } }
}
