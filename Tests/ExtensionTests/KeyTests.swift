import Foundation
import TestSupport
import Testing

/// How a database that a URI names gets its key, and which keys are refused.
@Suite struct KeyTests {
  private let bench = Workbench()

  init() throws {
    _ = try bench.shell(
      ".open file:a.db?vfs=sealed&keyfile=key", "CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    try bench.write(Workbench.keyBytes(1), to: "group-key", permissions: 0o640)
    try bench.write(Workbench.keyBytes(1), to: "world-key", permissions: 0o604)
    try bench.write(Workbench.keyBytes(1).dropLast(), to: "short-key")
    try bench.write(Workbench.keyBytes(1) + [10], to: "key-with-newline")
  }

  @Test(arguments: [
    ("vfs=sealed&keyfile=other-key", "the key does not open this database"),
    ("vfs=sealed", "name a key file with keyfile=PATH"),
    ("", "name a key file with keyfile=PATH"),
    ("vfs=sealed&keyfile=", "keyfile names no file"),
    ("vfs=sealed&keyfile=nowhere", "nowhere: the key cannot be read: No such file"),
    ("vfs=sealed&keyfile=.", "not a regular file"),
    ("vfs=sealed&keyfile=a.db", "other users can read or write it"),
    ("vfs=sealed&keyfile=group-key", "other users can read or write it"),
    ("vfs=sealed&keyfile=world-key", "other users can read or write it"),
    ("vfs=sealed&keyfile=short-key", "it does not hold 32 bytes"),
    ("vfs=sealed&keyfile=key-with-newline", "it does not hold 32 bytes"),
    ("vfs=sealed&keyfd=9", "descriptor 9: the key cannot be read: Bad file descriptor"),
    ("vfs=sealed&keyfd=0", "descriptor 0: the key cannot be read: it is neither"),
    ("vfs=sealed&keyfd=three", "keyfd must be the number of a descriptor"),
    ("vfs=sealed&keyfd=-1", "keyfd must be the number of a descriptor"),
    ("vfs=sealed&keyfile=key&keyfd=0", "the URI names two keys"),
    ("vfs=sealed&key=s3cret", "a key must not appear in a URI"),
    ("vfs=sealed&keyfile=key&hexkey=5e", "a key must not appear in a URI"),
    ("KEY=s3cret", "a key must not appear in a URI"),
  ])
  func `each unusable key is refused, and sealed_error() gives the reason`(
    query: String, reason: String
  ) throws {
    let before = try bench.bytes("a.db")
    let uri = "file:a.db?\(query)"
    let outcome = try bench.shell(".open \(uri)", "SELECT sealed_error()")
    #expect(outcome.errors.contains("unable to open database"))
    #expect(outcome.text.contains(reason))
    #expect(!outcome.text.contains("s3cret"))
    // A new database is refused in the same way, and no file is created.
    if !reason.contains("does not open") && !query.isEmpty {
      let creation = try bench.shell(".open file:new.db?\(query)", "SELECT sealed_error()")
      #expect(creation.text.contains(reason))
      #expect(!FileManager.default.fileExists(atPath: bench.path("new.db")))
    }
    #expect(try bench.bytes("a.db") == before)
  }

  @Test(arguments: ["PRAGMA key='s3cret'", "PRAGMA rekey='s3cret'", "PRAGMA HexKey='5e'"])
  func `a key in SQL is refused, not ignored`(pragma: String) throws {
    let outcome = try bench.shell(".open file:a.db?vfs=sealed&keyfile=key", pragma)
    #expect(outcome.errors.contains("a key must not appear in a URI or in SQL"))
    #expect(!outcome.errors.contains("s3cret"))
    #expect(outcome.status != 0)
  }

  @Test func `SQLite's error log has the reason for a refused key, too`() throws {
    let outcome = try bench.shell(".log stdout", ".open file:a.db?vfs=sealed&keyfile=other-key")
    #expect(outcome.text.contains("a.db: the key does not open this database"))
  }

  @Test func `a descriptor of a regular file gives its key any number of times`() throws {
    let outcome = try script(
      "exec \(shell) '.open file:a.db?keyfd=3' 'SELECT x FROM t' "
        + "'.open file:a.db?keyfd=3' 'SELECT x FROM t' 3<key")
    outcome.expectOutput("1\n1\n")
  }

  @Test func `a pipe gives its key once`() throws {
    let outcome = try script(
      "cat key | \(shell) '.open file:a.db?keyfd=0' 'SELECT x FROM t' "
        + "'.open file:a.db?keyfd=0' 'SELECT sealed_error()'")
    #expect(outcome.text.hasPrefix("1\ndescriptor 0: the key cannot be read"))
  }

  @Test func `a pipe with more bytes than a key is refused`() throws {
    let outcome = try script(
      "cat key-with-newline | \(shell) '.open file:a.db?keyfd=0' 'SELECT sealed_error()'")
    #expect(outcome.text.contains("it does not hold 32 bytes"))
  }

  @Test func `a symbolic link to a key file is checked by the file's own permissions`() throws {
    try #require(symlink("key", bench.path("link")) == 0)
    try #require(symlink("group-key", bench.path("loose-link")) == 0)
    let outcome = try bench.shell(".open file:a.db?vfs=sealed&keyfile=link", "SELECT x FROM t")
    #expect(outcome.text == "1\n")
    let refused = try bench.shell(
      ".open file:a.db?vfs=sealed&keyfile=loose-link", "SELECT sealed_error()")
    #expect(refused.text.contains("other users can read or write it"))
  }

  private var shell: String { "/usr/bin/sqlite3 :memory: '.load \(Workbench.library)'" }

  private func script(_ text: String) throws -> Program { try bench.run("/bin/sh", ["-c", text]) }
}
