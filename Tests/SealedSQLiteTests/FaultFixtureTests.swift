import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import Testing

/// Each stored database with one fault has one code, for an opening and for a later read.
///
/// In a later read the application sees GRDB's error first.
@Suite struct FaultFixtureTests {
  struct Fault: Sendable, CustomTestStringConvertible {
    let fixture: String
    let code: SealedDatabaseError.Code
    var page: UInt32?
    var testDescription: String { fixture }
  }

  static let faults: [Fault] = [
    Fault(fixture: "key-check", code: .wrongKey), Fault(fixture: "file-id", code: .wrongKey),
    Fault(fixture: "other-magic", code: .notSealed),
    Fault(fixture: "plain-database", code: .plainDatabase),
    Fault(fixture: "newer-version", code: .newerVersion),
    Fault(fixture: "draft-version", code: .newerVersion),
    Fault(fixture: "first-page-content", code: .damagedPage, page: 1),
    Fault(fixture: "page-content", code: .damagedPage, page: 3),
    Fault(fixture: "page-nonce", code: .damagedPage, page: 3),
    Fault(fixture: "page-tag", code: .damagedPage, page: 3),
    Fault(fixture: "pages-exchanged", code: .damagedPage, page: 3),
    Fault(fixture: "page-of-zeros", code: .damagedPage, page: 3),
    Fault(fixture: "last-page-missing", code: .truncated),
    Fault(fixture: "log-version-of-sqlite", code: .unrelatedCompanionFile),
    Fault(fixture: "journal-record", code: .damagedJournal),
    Fault(fixture: "journal-header", code: .damagedJournal),
    Fault(fixture: "journal-first-byte", code: .damagedJournal),
    Fault(fixture: "super-journal-name", code: .damagedJournal),
  ]

  /// Passes a copy of a stored database to a body.
  private func withFixture(_ name: String, _ body: (FilePath) throws -> Void) throws {
    let place = SamplePlace()
    try place.put(fixture: name)
    try body(place.path("test.db"))
  }

  @Test(arguments: [
    ("hot-journal", true), ("journal-record", false), ("journal-header", false),
    ("journal-first-byte", false), ("super-journal-name", false), ("log-version-of-sqlite", false),
    ("torn-log", true),
  ])
  func `a salvage is incomplete without a journal that the database needs`(
    name: String, isComplete: Bool
  ) throws {
    try withFixture(name) { path in
      let report = try SealedDatabase.salvage(
        from: path, key: testKey(0x4B), to: path.removingLastComponent().appending("saved.db"))
      #expect(report.isComplete == isComplete, "\(report)")
    }
  }

  /// The error of an opening, or of a read after it.
  private func failure(
    of reader: () throws(SealedDatabaseError) -> any DatabaseReader
  ) throws -> SealedDatabaseError? {
    do {
      let reader = try reader()
      defer { try? reader.close() }
      do {
        _ = try reader.read { db in
          do {
            return try Int.fetchOne(db, sql: "SELECT sum(length(text)) FROM t")
          } catch let error as DatabaseError {
            let here = SealedDatabaseError(explaining: error, on: db)
            let fromOutside = SealedDatabaseError(explaining: error, in: reader)
            #expect(here.code == fromOutside.code && here.pageNumber == fromOutside.pageNumber)
            throw error
          }
        }
        return nil
      } catch let error as DatabaseError {
        return SealedDatabaseError(explaining: error, in: reader)
      }
    } catch let error as SealedDatabaseError {
      return error
    }
  }

  @Test(arguments: faults) func `each stored fault has its own code, in a pool and in a reader`(
    _ fault: Fault
  ) throws {
    try withFixture(fault.fixture) { path in
      let found = try failure { () throws(SealedDatabaseError) in
        try SealedDatabase.openPool(at: path, key: testKey(0x4B), creation: .never)
      }
      #expect(found?.code == fault.code, "\(found?.message ?? "none")")
      if let page = fault.page { #expect(found?.pageNumber == page) }
      #expect(found?.message.contains(path.string) == true)
    }
    try withFixture(fault.fixture) { path in
      let found = try failure { () throws(SealedDatabaseError) in
        try SealedDatabase.openReader(at: path, key: testKey(0x4B))
      }
      // A read-only connection cannot roll a journal back, whatever its fault is. It finds out
      // whether a journal must be rolled back from the journal's first and last bytes.
      let needsWriter = ["journal-record", "journal-header"].contains(fault.fixture)
      #expect(found?.code == (needsWriter ? .readOnly : fault.code), "\(found?.message ?? "none")")
      if let page = fault.page { #expect(found?.pageNumber == page) }
    }
  }

  @Test func `another database's key fails with wrongKey`() throws {
    try withFixture("rows") { path in
      let found = try failure { () throws(SealedDatabaseError) in
        try SealedDatabase.openPool(at: path, key: testKey(1), creation: .never)
      }
      #expect(found?.code == .wrongKey)
    }
  }

  @Test func `an opening reports the frames it left out and keeps the other rows`() throws {
    for isReader in [false, true] {
      try withFixture("damaged-log-frame") { path in
        let reader: any DatabaseReader =
          isReader
          ? try SealedDatabase.openReader(at: path, key: testKey(0x4B))
          : try SealedDatabase.openPool(at: path, key: testKey(0x4B), creation: .never)
        #expect(try reader.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 70)
        let tail = try #require(SealedDatabase.discardedLogTail(of: reader))
        #expect(tail.firstFrame > 1 && tail.frameCount >= 2)
        try reader.close()
      }
    }
    try withFixture("log-not-checkpointed") { path in
      let pool = try SealedDatabase.openPool(at: path, key: testKey(0x4B), creation: .never)
      #expect(SealedDatabase.discardedLogTail(of: pool) == nil)
      try pool.close()
    }
  }

  @Test func `a connection that is not on the sealed VFS is reported as such`() throws {
    try withFixture("rows") { path in
      // GRDB's own connection attaches it past the VFS, and SQLite says "file is not a database".
      let queue = try DatabaseQueue()
      try queue.inDatabase { db in
        let error = #expect(throws: DatabaseError.self) {
          try db.execute(sql: "ATTACH 'file:\(path.string)?mode=ro' AS s; SELECT count(*) FROM s.t")
        }
        let reported = try #require(error)
        #expect(SealedDatabaseError(explaining: reported, on: db).code == .notOnSealedVFS)
        #expect(SealedDatabaseError(explaining: reported, in: queue).code == .notOnSealedVFS)
      }
      try queue.close()
      // We open it by a name that leads SQLite past the VFS, and the connection is refused.
      let uri = FilePath("file:\(path.string)?vfs=unix&mode=ro")
      for isReader in [false, true] {
        let failure = #expect(throws: SealedDatabaseError.self) {
          if isReader {
            try SealedDatabase.openReader(at: uri, key: testKey(0x4B)).close()
          } else {
            try SealedDatabase.openPool(at: uri, key: testKey(0x4B)).close()
          }
        }
        #expect(failure?.code == (isReader ? .notFound : .notOnSealedVFS))
      }
    }
  }
}
