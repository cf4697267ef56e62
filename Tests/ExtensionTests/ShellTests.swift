import Foundation
import GRDB
import TestSupport
import Testing

/// The distribution's `sqlite3` with the extension.
@Suite struct ShellTests {
  private let bench = Workbench()
  private let canary = Workbench.canary
  private let open = ".open file:a.db?vfs=sealed&keyfile=key"

  @Test(arguments: ["wal", "delete", "truncate", "persist"])
  func `GRDB reads the shell's rows in each journal mode`(mode: String) throws {
    let outcome = try bench.shell(
      open, "PRAGMA journal_mode=\(mode); CREATE TABLE t(x); INSERT INTO t VALUES ('\(canary)')",
      "UPDATE t SET x = x || '!'; SELECT x FROM t")
    outcome.expectOutput("\(mode)\n\(canary)!\n")
    #expect(try bench.filesWithCanary() == [])

    let pool = try bench.pool()
    #expect(try pool.read { try String.fetchAll($0, sql: "SELECT x FROM t") } == ["\(canary)!"])
  }

  @Test func `the shell reads and writes while a pool has the database open`() throws {
    let pool = try bench.pool()
    try pool.write { db in
      try db.execute(sql: "CREATE TABLE t(x); INSERT INTO t VALUES (?)", arguments: [canary])
    }
    let outcome = try bench.shell(open, "INSERT INTO t VALUES (2); SELECT x FROM t")
    outcome.expectOutput("\(canary)\n2\n")
    #expect(try pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 2)
    #expect(try bench.filesWithCanary() == [])
  }

  @Test(arguments: ["wal", "delete"])
  func `a process that maps files by default creates and reads a database`(mode: String) throws {
    let outcome = try bench.run(
      "/usr/bin/sqlite3",
      [
        "-bail", "-mmap", "268435456", ":memory:", ".load \(Workbench.library)", open,
        "PRAGMA journal_mode=\(mode); CREATE TABLE t(x); INSERT INTO t SELECT hex(zeroblob(9000))",
        "CREATE TEMP TABLE s AS SELECT x FROM t; SELECT length(x) FROM s",
      ])
    outcome.expectOutput("\(mode)\n18000\n")
    #expect(try bench.shell(open, "PRAGMA integrity_check").text == "ok\n")
  }

  @Test func `mode=ro and immutable=1 open a database that cannot be written`() throws {
    _ = try bench.shell(open, "CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    let before = try bench.bytes("a.db")
    for parameter in ["mode=ro", "immutable=1"] {
      let reading = try bench.shell("\(open)&\(parameter)", "SELECT x FROM t")
      #expect(reading.text == "1\n")
      let writing = try bench.shell("\(open)&\(parameter)", "INSERT INTO t VALUES (2)")
      #expect(writing.errors.contains("readonly database"))
    }
    #expect(try bench.bytes("a.db") == before)
  }

  @Test func `one transaction changes two databases with different keys`() throws {
    let attach = "ATTACH 'file:b.db?vfs=sealed&keyfile=other-key' AS b"
    let outcome = try bench.shell(
      open, attach, "CREATE TABLE t(x); CREATE TABLE b.u(x)",
      "BEGIN; INSERT INTO t VALUES ('\(canary)'); INSERT INTO u SELECT x FROM t; COMMIT",
      "SELECT x FROM u")
    outcome.expectOutput("\(canary)\n")
    #expect(try bench.filesWithCanary() == [])
    let other = try bench.shell(".open file:b.db?vfs=sealed&keyfile=other-key", "SELECT x FROM u")
    #expect(other.text == "\(canary)\n")
    let wrong = try bench.shell(open, "ATTACH 'file:b.db?vfs=sealed&keyfile=key' AS b")
    #expect(wrong.errors.contains("unable to open database"))
  }

  @Test func `a plain database stays plain with the extension loaded`() throws {
    let outcome = try bench.shell(".open plain.db", "CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    #expect(outcome.errors == "")
    let stock = try bench.stockShell("plain.db", "SELECT x FROM t")
    #expect(stock.text == "1\n")
  }
}
