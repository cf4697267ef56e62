import GRDB
import TestSupport
import Testing

/// The distribution's `python3` with the extension.
@Suite struct PythonTests {
  private let bench = Workbench()
  private let canary = Workbench.canary

  @Test func `Python and GRDB read each other's rows in a sealed database`() throws {
    try bench.pool().write { db in
      try db.execute(sql: "CREATE TABLE t(x); INSERT INTO t VALUES (?)", arguments: [canary])
    }
    let outcome = try bench.python(
      """
      db = sqlite3.connect("file:a.db?vfs=sealed&keyfile=key", uri=True)
      with db:
          db.execute("INSERT INTO t SELECT x || '!' FROM t")
      print([row[0] for row in db.execute("SELECT x FROM t")])
      """)
    outcome.expectOutput("['\(canary)', '\(canary)!']\n")
    #expect(try bench.filesWithCanary() == [])
    let pool = try bench.pool()
    #expect(try pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 2)
  }

  @Test func `sealed_error() gives Python the reason for a refused key`() throws {
    let outcome = try bench.python(
      """
      try:
          sqlite3.connect("file:a.db?vfs=sealed&keyfile=nowhere", uri=True)
      except sqlite3.Error as error:
          print(error)
      print(loader.execute("SELECT sealed_error()").fetchone()[0])
      """)
    #expect(outcome.errors == "")
    #expect(outcome.text.hasPrefix("authorization denied\nnowhere: the key cannot be read"))
    #expect(outcome.text.contains("No such file or directory"))
  }

  @Test func `Python's backup copies a sealed database into one with another key`() throws {
    let outcome = try bench.python(
      """
      source = sqlite3.connect("file:a.db?vfs=sealed&keyfile=key", uri=True)
      with source:
          source.execute("CREATE TABLE t(x)")
          source.execute("INSERT INTO t VALUES ('\(canary)')")
      target = sqlite3.connect("file:b.db?vfs=sealed&keyfile=other-key", uri=True)
      source.backup(target)
      target.close()
      again = sqlite3.connect("file:b.db?vfs=sealed&keyfile=other-key", uri=True)
      print(again.execute("SELECT x FROM t").fetchone()[0])
      """)
    outcome.expectOutput("\(canary)\n")
    #expect(try bench.filesWithCanary() == [])
    // Bytes 8 to 15 are the file's id: a copy has a new one.
    #expect(try bench.bytes("a.db")[8..<16] != bench.bytes("b.db")[8..<16])
  }
}
