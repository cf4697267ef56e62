import Foundation
import GRDB
import TestSupport
import Testing

/// Copies whole databases from plain to sealed, back, and to another key, as the manual describes.
@Suite struct MigrationTests {
  private let bench = Workbench()
  private let canary = Workbench.canary
  private let openPlain = ".open plain.db"
  private let openSealed = ".open file:a.db?vfs=sealed&keyfile=key"

  private func makePlain() throws {
    let outcome = try bench.stockShell(
      "plain.db",
      """
      PRAGMA auto_vacuum=INCREMENTAL; PRAGMA user_version=7;
      CREATE TABLE t(x); INSERT INTO t VALUES ('\(canary)'); CREATE INDEX i ON t(x)
      """)
    #expect(outcome.errors == "")
  }

  private func makeSealed() throws {
    let outcome = try bench.shell(
      openSealed, "PRAGMA user_version=7; CREATE TABLE t(x); INSERT INTO t VALUES ('\(canary)')")
    #expect(outcome.errors == "")
  }

  @Test func `VACUUM INTO copies a plain database and its settings into a sealed one`() throws {
    try makePlain()
    let before = try bench.bytes("plain.db")
    let outcome = try bench.shell(
      openPlain, "SELECT sealed_reserve()",
      "VACUUM INTO 'file:a.db?vfs=sealed&keyfile=key&sealed_vacuum_into=1'")
    outcome.expectOutput("40\n")
    #expect(try bench.bytes("plain.db") == before)
    #expect(try bench.filesWithCanary() == ["plain.db"])

    let facts = try bench.pool().read { db in
      try [
        "SELECT x FROM t INDEXED BY i", "PRAGMA user_version", "PRAGMA auto_vacuum",
        "PRAGMA integrity_check",
      ].map { try String.fetchOne(db, sql: $0) }
    }
    #expect(facts == [canary, "7", "2", "ok"])
  }

  @Test(arguments: [
    "VACUUM INTO 'file:a.db?vfs=sealed&keyfile=key&sealed_vacuum_into=1'",
    ".backup 'file:a.db?vfs=sealed&keyfile=key'",
  ])
  func `pages without room for nonce and tag are refused, and nothing is written`(
    command: String
  ) throws {
    try makePlain()
    let outcome = try bench.shell(".log stdout", openPlain, command)
    #expect(outcome.errors.contains("disk I/O error"))
    #expect(outcome.text.contains("the pages leave no room for nonce and tag"))
    #expect(try bench.bytes("a.db").isEmpty)
  }

  @Test(arguments: ["VACUUM INTO 'file:plain.db?vfs=unix'", ".backup plain.db"])
  func `a sealed database is copied to a plain one that the stock shell reads`(command: String)
    throws
  {
    try makeSealed()
    let outcome = try bench.shell(openSealed, command)
    #expect(outcome.errors == "")
    let stock = try bench.stockShell(
      "plain.db", "SELECT x FROM t; PRAGMA user_version; PRAGMA quick_check")
    #expect(stock.text == "\(canary)\n7\nok\n")
  }

  @Test(arguments: ["plain.db", "file:b.db?vfs=sealed&keyfile=other-key"])
  func `VACUUM INTO a path without a key or its mark is refused with a hint`(
    target: String
  ) throws {
    try makeSealed()
    // The shell ends at the first error, and its log truncates a line.
    let outcome = try bench.python(
      """
      db = sqlite3.connect("file:a.db?vfs=sealed&keyfile=key", uri=True)
      try:
        db.execute("VACUUM INTO '\(target)'")
      except sqlite3.DatabaseError as error:
        print(error)
      print(loader.execute("SELECT sealed_error()").fetchone()[0])
      """)
    #expect(outcome.text.contains("authorization denied"), "\(outcome.errors)")
    #expect(outcome.text.contains("VACUUM INTO does not write to this file"))
    #expect(outcome.text.contains("sealed_vacuum_into=1"))
    #expect(try bench.filesWithCanary() == [])
  }

  @Test(arguments: [
    "VACUUM INTO 'file:b.db?vfs=sealed&keyfile=other-key&sealed_vacuum_into=1'",
    ".backup 'file:b.db?vfs=sealed&keyfile=other-key'",
  ])
  func `a copy under another key has a new file id`(command: String) throws {
    try makeSealed()
    let outcome = try bench.shell(openSealed, command)
    #expect(outcome.errors == "")
    let copy = try bench.shell(
      ".open file:b.db?vfs=sealed&keyfile=other-key", "SELECT x FROM t; PRAGMA quick_check")
    #expect(copy.text == "\(canary)\nok\n")
    #expect(try bench.filesWithCanary() == [])
    // Bytes 8 to 15: docs/reference/sealed-database-format.md.
    #expect(try bench.bytes("a.db")[8..<16] != bench.bytes("b.db")[8..<16])
  }

  @Test func `a dump has all rows, and can be read into a sealed database`() throws {
    try makeSealed()
    let dump = try bench.shell(openSealed, ".dump").text
    #expect(dump.contains("INSERT INTO t VALUES('\(canary)');"))
    try bench.write(Array(dump.utf8), to: "dump.sql")
    let copy = try bench.shell(
      ".open file:b.db?vfs=sealed&keyfile=other-key", ".read dump.sql", "SELECT x FROM t")
    copy.expectOutput("\(canary)\n")
    #expect(try bench.filesWithCanary() == ["dump.sql"])
  }
}
