import Foundation
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// A key of 32 equal bytes.
func testKey(_ byte: UInt8 = 7) -> SecretBytes {
  SecretBytes(copying: [UInt8](repeating: byte, count: 32))
}

/// Expects an error with a code, and returns it.
@discardableResult
func expectError<R>(
  _ code: SealedDatabaseError.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () throws -> R
) -> SealedDatabaseError? {
  let error = #expect(throws: SealedDatabaseError.self, sourceLocation: sourceLocation) {
    _ = try body()
  }
  #expect(error?.code == code, sourceLocation: sourceLocation)
  return error
}

/// A directory of sample databases, with the means to copy and compare them.
struct SamplePlace {
  private let folder = ScratchFolder()
  var directory: FilePath { folder.path }

  static let rawKey = "x'\(String(repeating: "7c", count: 32))'"
  static let rawKeyAndSalt = "\(rawKey.dropLast())\(String(repeating: "5A", count: 16))'"

  /// The three formats, with the keys of these tests.
  enum Format: String, CaseIterable {
    case sealed, sqlcipher4, plain
  }

  func path(_ name: String) -> FilePath { directory.appending(name) }

  static func key(_ text: String = rawKey) throws -> SQLCipherKey {
    try SQLCipherKey(SecretBytes(copying: Array(text.utf8)))
  }

  func file(_ name: String, _ format: Format) throws -> DatabaseFile {
    switch format {
    case .sealed: .sealed(path(name), key: testKey())
    case .sqlcipher4: .sqlcipher4(path(name), key: try Self.key())
    case .plain: .plain(path(name))
    }
  }

  func copy(_ source: String, _ from: Format, _ target: String, _ to: Format) throws {
    try SealedDatabase.copy(from: file(source, from), to: file(target, to))
  }

  /// Copies an SQLCipher database; the key has the form of `PRAGMA key`.
  func copy(sqlcipher source: String, key: String, _ target: String, _ to: Format) throws {
    let file = DatabaseFile.sqlcipher4(path(source), key: try Self.key(key))
    try SealedDatabase.copy(from: file, to: self.file(target, to))
  }

  func copy(_ source: String, _ from: Format, sqlcipher target: String, key: String) throws {
    let file = DatabaseFile.sqlcipher4(path(target), key: try Self.key(key))
    try SealedDatabase.copy(from: self.file(source, from), to: file)
  }

  /// Makes a plain database with every kind of schema entry.
  func makePlain(_ name: String, settings: [String] = [], rowCount: Int = 300) throws {
    try Sample.make(path(name), settings: settings, rowCount: rowCount)
  }

  /// Makes `plain`, `sealed` and `sqlcipher4`, and `text`, which is not a database.
  func makeOneOfEach() throws {
    try makePlain("plain", rowCount: 10)
    try copy("plain", .plain, "sealed", .sealed)
    try copy("plain", .plain, "sqlcipher4", .sqlcipher4)
    try write(Array("no database at all, only text".utf8), "text")
  }

  /// Copies a database of `Fixtures/databases`, with its log or journal, to `test.db`.
  func put(fixture name: String) throws {
    for suffix in ["", "-wal", "-journal"] {
      let stored = Repository.path("Fixtures/databases/\(name).db\(suffix)")
      if FileManager.default.fileExists(atPath: stored) {
        try FileManager.default.copyItem(atPath: stored, toPath: path("test.db" + suffix).string)
      }
    }
  }

  /// All contents of a plain database, as text.
  func dump(_ name: String) throws -> [String] { try Sample.dump(path(name)) }

  func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path(name).string)))
  }

  func write(_ bytes: [UInt8], _ name: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path(name).string))
  }

  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: directory.string)) ?? []).sorted()
  }
}

/// A database with every kind of content that SQLite can store.
enum Sample {
  static func make(_ path: FilePath, settings: [String], rowCount: Int) throws {
    let queue = try DatabaseQueue(path: path.string)
    try queue.inDatabase { db in
      for setting in settings { try db.execute(sql: "PRAGMA \(setting)") }
      try db.execute(sql: "PRAGMA foreign_keys = OFF")
      try db.execute(
        sql: """
          CREATE TABLE "ta""ble" (id INTEGER PRIMARY KEY AUTOINCREMENT, "te xt" TEXT CHECK (length("te xt") > 1), data BLOB);
          CREATE TABLE gone (id INTEGER PRIMARY KEY AUTOINCREMENT);
          CREATE TABLE keyless (a, b);
          CREATE TABLE indexed (rowid TEXT, b DEFAULT (1 + 1));
          CREATE TABLE named (a TEXT PRIMARY KEY, parent REFERENCES "ta""ble"(id));
          CREATE TABLE without (a TEXT, b INTEGER, c, PRIMARY KEY (b DESC, a)) WITHOUT ROWID;
          CREATE TABLE strict (a INT, b ANY) STRICT;
          CREATE TABLE generated (a INTEGER, b AS (a * 2) STORED, c AS (a || 'x'), d);
          CREATE TABLE log (text);
          CREATE INDEX partial ON indexed (b) WHERE b > 3;
          CREATE UNIQUE INDEX expression ON "ta""ble" (lower("te xt") COLLATE NOCASE DESC);
          CREATE INDEX generatedindex ON generated (c, d);
          CREATE VIEW v (x) AS SELECT "te xt" FROM "ta""ble";
          CREATE TRIGGER g AFTER INSERT ON keyless BEGIN INSERT INTO log VALUES (new.a); END;
          CREATE TRIGGER gv INSTEAD OF INSERT ON v BEGIN INSERT INTO log VALUES (new.x); END;
          CREATE VIRTUAL TABLE f4 USING fts4(body);
          CREATE VIRTUAL TABLE f5 USING fts5(title, body);
          CREATE VIRTUAL TABLE r USING rtree(id, x0, x1);
          """)
      try db.execute(sql: "BEGIN")
      for index in 1...rowCount {
        let text = "canary \(index) \u{E9}\u{4E16}"
        try db.execute(
          sql: """
            INSERT INTO "ta""ble" ("te xt", data) VALUES (?, zeroblob(?));
            """, arguments: [text, index * 20])
        try db.execute(
          sql: "INSERT INTO keyless (rowid, a, b) VALUES (?, ?, ?)",
          arguments: [index * 5, text, index % 3 == 0 ? nil : Double(index) / 3])
        try db.execute(
          sql: "INSERT INTO indexed (_rowid_, rowid, b) VALUES (?, ?, ?)",
          arguments: [index * 9, "r\(index)", index])
        try db.execute(
          sql: "INSERT INTO named (rowid, a, parent) VALUES (?, ?, 99999)",
          arguments: [index * 11, "n\(rowCount - index)"])
        try db.execute(
          sql: "INSERT INTO without VALUES (?, ?, ?)", arguments: ["w\(index)", index % 7, text])
        try db.execute(sql: "INSERT INTO strict VALUES (?, ?)", arguments: [index, "1.0"])
        try db.execute(sql: "INSERT INTO generated (a, d) VALUES (?, ?)", arguments: [index, text])
        try db.execute(sql: "INSERT INTO f4 VALUES (?)", arguments: [text])
        try db.execute(sql: "INSERT INTO f5 VALUES (?, ?)", arguments: ["t", text])
        try db.execute(sql: "INSERT INTO r VALUES (?, ?, ?)", arguments: [index, index, index + 1])
      }
      try db.execute(
        sql: """
          DELETE FROM "ta""ble" WHERE id > \(rowCount - 5); INSERT INTO gone VALUES (800); DROP TABLE gone;
          ALTER TABLE strict ADD COLUMN late ANY DEFAULT 'later';
          INSERT INTO "ta""ble" ("te xt", data) VALUES ('big', randomblob(300000));
          ANALYZE; PRAGMA user_version = -7; PRAGMA application_id = 305419896;
          """)
      try db.execute(sql: "COMMIT; PRAGMA ignore_check_constraints = ON")
      try db.execute(
        sql: """
          INSERT INTO "ta""ble" ("te xt") VALUES (''), ('deleted');
          -- The counter of AUTOINCREMENT is greater than any row id.
          DELETE FROM "ta""ble" WHERE "te xt" = 'deleted';
          """)
    }
    try queue.close()
  }

  static func dump(_ path: FilePath) throws -> [String] {
    var configuration = Configuration()
    configuration.readonly = true
    let queue = try DatabaseQueue(path: path.string, configuration: configuration)
    defer { try? queue.close() }
    return try queue.read { db in
      func rows(_ sql: String) throws -> [String] {
        try Row.fetchAll(db, sql: sql).map { "\($0)" }
      }
      var lines = try rows(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
      let tables = try String.fetchAll(
        db,
        sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name")
      for table in tables {
        let rowID =
          table == "indexed" ? "_rowid_, " : try hasRowID(db, table) ? "rowid, " : ""
        let quoted = table.replacingOccurrences(of: "\"", with: "\"\"")
        lines += try rows("SELECT \(rowID)* FROM \"\(quoted)\" ORDER BY 1, 2")
          .map { "\(table) \($0)" }
      }
      lines += try rows("SELECT rowid, * FROM f5 WHERE f5 MATCH 'canary' ORDER BY 1")
      lines += try rows("SELECT * FROM r WHERE x0 > 290 ORDER BY 1")
      for pragma in [
        "encoding", "auto_vacuum", "user_version", "application_id", "integrity_check",
      ] {
        lines.append("\(pragma) \(try String.fetchOne(db, sql: "PRAGMA \(pragma)") ?? "")")
      }
      return lines
    }
  }

  private static func hasRowID(_ db: Database, _ table: String) throws -> Bool {
    try Bool.fetchOne(
      db, sql: "SELECT NOT wr FROM pragma_table_list WHERE name = ?", arguments: [table]) ?? false
  }
}
