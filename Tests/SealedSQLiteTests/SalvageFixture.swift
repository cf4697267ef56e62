import GRDB
import SealedSQLite
import TestSupport
import Testing

/// A database with every kind of row storage of SQLite, and a description of each page.
struct SalvageFixture: Sendable {
  struct Page: Sendable {
    let number: Int
    let table: String
    let kind: String
    let cellCount: Int
  }

  let bytes: [UInt8]
  let pages: [Page]
  let rows: [String: [String: String]]
  let schema: [String]
  let settings: [String]

  static let columns = [
    "people": ["id", "name", "score", "data"], "notes": ["text", "n", "rowid"],
    "pairs": ["a", "b", "c"], "counted": ["id", "v", "later"], "made": ["a", "b", "c", "d"],
  ]
  static let tables = columns.keys.sorted()

  enum Variant: String, CaseIterable, Sendable {
    case plain, mapped, utf16, longSchema

    private static let made: [Variant: Result<SalvageFixture, any Error>] = [
      .plain: Result { try SalvageFixture(autoVacuum: .none) },
      .mapped: Result { try SalvageFixture(autoVacuum: .incremental) },
      .utf16: Result { try SalvageFixture(autoVacuum: .none, encoding: "UTF-16be") },
      .longSchema: Result { try SalvageFixture(autoVacuum: .none, extraTables: 60) },
    ]

    func fixture() throws -> SalvageFixture { try #require(Self.made[self]).get() }
  }

  init(
    autoVacuum: SealedDatabase.Creation.AutoVacuum, encoding: String = "UTF-8",
    extraTables: Int = 0
  ) throws {
    let folder = ScratchFolder()
    var configuration = Configuration()
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA encoding = '\(encoding)'") }
    let pool = try SealedDatabase.openPool(
      at: folder("fixture.db"), key: testKey(), configuration: configuration,
      creation: .ifAbsent(autoVacuum: autoVacuum))
    try pool.write { try $0.execute(sql: Self.sql(extraTables: extraTables)) }
    (pages, rows, schema, settings) = try pool.read { db in
      let pages = try Row.fetchAll(db, sql: "SELECT pageno, name, pagetype, ncell FROM dbstat")
      return (
        pages.map { Page(number: $0[0], table: $0[1], kind: $0[2], cellCount: $0[3]) },
        try Self.dump(db), try Self.schema(db), try Self.settings(db)
      )
    }
    _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
    try pool.close()
    bytes = try folder.bytes("fixture.db")
  }

  static func schema(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db, sql: "SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
  }

  static func settings(_ db: Database) throws -> [String] {
    try ["encoding", "auto_vacuum", "user_version", "application_id"].map { name in
      try String.fetchOne(db, sql: "PRAGMA \(name)") ?? ""
    }
  }

  private static func sql(extraTables: Int) -> String {
    let extra = (0..<extraTables).map { index in
      """
      CREATE TABLE extra_\(index) (id INTEGER PRIMARY KEY, first TEXT, second TEXT, third TEXT);
      INSERT INTO extra_\(index) VALUES (\(index), 'x', 'y', NULL);
      """
    }
    return """
      \(extra.prefix(extraTables / 2).joined(separator: "\n"))
      CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, score REAL, data BLOB);
      CREATE TABLE notes (text TEXT, n, "rowid" TEXT);
      CREATE TABLE pairs (c TEXT, b INTEGER, a TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
      CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT UNIQUE);
      CREATE TABLE made (a INTEGER, b INTEGER AS (a * 2) STORED, c AS (a + 1), d TEXT);
      CREATE INDEX people_name ON people (name, score);
      CREATE VIEW old AS SELECT * FROM people WHERE id < 10;
      CREATE TRIGGER busy AFTER INSERT ON people BEGIN INSERT INTO notes (text) VALUES ('bad'); END;
      DROP TRIGGER busy;
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO people SELECT i * 3, 'name ' || i, i * 1.5, zeroblob(200 + i % 90) FROM n;
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
        INSERT INTO notes SELECT 'note ' || hex(zeroblob(i * 8)), i, NULL FROM n;
      INSERT INTO notes VALUES (hex(zeroblob(6000)), 1.0, ''), (zeroblob(9000), NULL, 'r');
      INSERT INTO notes VALUES (CAST(x'ff00fe61' AS TEXT), -1, CAST(x'61006200' AS TEXT));
      INSERT INTO notes VALUES (9223372036854775807, -9223372036854775808, 1e300);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
        INSERT INTO pairs SELECT 'value ' || hex(zeroblob(60)) || i, i, 'k' || (i % 7) || hex(zeroblob(20)) FROM n;
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
        INSERT INTO counted (v) SELECT 'v' || i FROM n;
      DELETE FROM counted WHERE id > 140;
      ALTER TABLE counted ADD COLUMN later INTEGER DEFAULT 7;
      INSERT INTO counted (v, later) VALUES ('new', 8), ('newer', NULL);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
        INSERT INTO made (a, d) SELECT i, 'd' || i FROM n;
      CREATE TRIGGER busy AFTER INSERT ON people BEGIN INSERT INTO notes (text) VALUES ('bad'); END;
      \(extra.dropFirst(extraTables / 2).joined(separator: "\n"))
      PRAGMA user_version = 42;
      PRAGMA application_id = 77;
      """
  }

  /// The exact rows of every table, by key.
  static func dump(_ db: Database) throws -> [String: [String: String]] {
    var dump: [String: [String: String]] = [:]
    for table in tables where try db.tableExists(table) {
      dump[table] = try rows(of: table, db)
    }
    return dump
  }

  static func rows(of table: String, _ db: Database) throws -> [String: String] {
    let key = table == "pairs" ? "a || b" : "_rowid_"
    let columns = try Row.fetchAll(db, sql: "PRAGMA table_xinfo(\(table))").map {
      let name = "\"\($0["name"] as String)\""
      return "typeof(\(name)) || CASE typeof(\(name)) WHEN 'real' THEN quote(\(name))"
        + " ELSE hex(\(name)) END"
    }
    var rows: [String: String] = [:]
    let sql = "SELECT \(key), \(columns.joined(separator: "||','||")) FROM \(table) NOT INDEXED"
    for row in try Row.fetchAll(db, sql: sql) {
      rows["\(row[0] as DatabaseValue)"] = row[1]
    }
    return rows
  }
}
