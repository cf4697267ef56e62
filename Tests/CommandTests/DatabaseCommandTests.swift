import Foundation
import SystemPackage
import TestSupport
import Testing

@Suite struct DatabaseCommandTests {
  private let fixture: ExchangeFixture
  private var folder: ScratchFolder { fixture.folder }
  private var key: String { fixture.key }
  private var sealed: String { fixture.sealed }
  private var fixturesKey: String { folder.path("fixtures-key") }

  init() throws {
    fixture = try ExchangeFixture(
      plain: """
        CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
        WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(30)) FROM n;
        CREATE INDEX i ON t (text);
        """)
    try folder.file("other", (0..<32).map { _ in UInt8.random(in: 0...255) })
    try folder.file("fixtures-key", [UInt8](repeating: 0x4B, count: 32))
    try folder.file("passphrase", "correct horse\n".utf8)
  }

  private func run(_ arguments: String...) throws -> Program {
    try Tool.run(["database"] + arguments)
  }

  private func exportPlain(_ name: String, to target: String, _ key: String) throws -> Program {
    try run("export", folder.path(name), target, "--format", "plain", "--key-file", key)
  }

  private func damagePage7() throws {
    try DamageTests.change(sealed) { $0[6 * 4096 + 100] ^= 1 }
  }

  @Test func `import and export give equal dumps, with no plaintext in the sealed file`() throws {
    #expect(!(try folder.bytes("sealed").contains(Array("row 17".utf8))))
    try exportPlain("sealed", to: folder.path("out"), key).expect(0)
    #expect(try folder.shell("out", ".dump") == folder.shell("plain", ".dump"))
    #expect(try folder.shell("out", "SELECT count(*) FROM t") == "2000\n")
  }

  @Test(arguments: ["correct horse\n", "x'" + String(repeating: "0f", count: 32) + "'"])
  func `export to SQLCipher 4 and import back give equal dumps`(passphrase: String) throws {
    let file = try folder.file("passphrase", passphrase.utf8)
    let (cipher, other) = (folder.path("cipher"), folder.path("other"))
    try run(
      "export", sealed, cipher, "--format", "sqlcipher4", "--key-file", key, "--new-key-file", file
    ).expect(0)
    func importCipher(_ name: String, _ key: String, newKey: String) throws -> Program {
      try run(
        "import", cipher, folder.path(name), "--format", "sqlcipher4", "--key-file", key,
        "--new-key-file", newKey)
    }
    try importCipher("no", key, newKey: key).expect(77)
    #expect(!FileManager.default.fileExists(atPath: folder.path("no")))
    try importCipher("back", file, newKey: other).expect(0)
    try exportPlain("back", to: folder.path("out"), other).expect(0)
    #expect(try folder.shell("out", ".dump") == folder.shell("plain", ".dump"))
  }

  @Test func `database verify reports an intact database, or the damaged page`() throws {
    try run("verify", sealed, "--key-file", key, "--json")
      .expect(0, prints: "\"isClean\":true", "\"contentCheck\":\"done\"")
    let full = try run("verify", sealed, "--key-file", key).text
    #expect(full.hasSuffix("contents   consistent\n"))
    let quick = try run("verify", sealed, "--key-file", key, "--quick")
    #expect(quick.status == 0 && quick.text.hasSuffix("contents   not checked\n"))
    try damagePage7()
    let before = try folder.bytes("sealed")
    try run("verify", sealed, "--key-file", key, "--json")
      .expect(65, says: "hint: ", prints: "\"damagedPages\":[7]")
    try run("verify", sealed, "--key-file", key).expect(65, prints: "damaged    7\n")
    #expect(try folder.bytes("sealed") == before)
  }

  @Test(arguments: [
    ("log-first-page-header", "copies of page 1 have another file header, in frames"),
    ("log-header-salts", "holds 3 commits of another generation, of which the database lacks"),
  ])
  func `database verify warns of a changed log and ends with 0`(
    log: String, warning: String
  ) throws {
    for suffix in ["db", "db-wal"] {
      let stored = Repository.path("Fixtures/databases/\(log).\(suffix)")
      try folder.file("log.\(suffix)", Data(contentsOf: URL(fileURLWithPath: stored)))
    }
    try run("verify", folder.path("log.db"), "--key-file", fixturesKey)
      .expect(0, prints: "warning    ", warning)
  }

  @Test func `database verify warns of a missing super-journal, and refuses an invalid one`() throws
  {
    let stored = Repository.path("Fixtures/databases/super-journal-name.db")
    let path = folder.path("hot.db")
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: stored + suffix, toPath: path + suffix)
    }
    try run("verify", path, "--key-file", fixturesKey)
      .expect(65, prints: "journal    damaged, and the database needs it: ")
    try DamageTests.change(path + "-journal") { bytes in
      let name = Array("/a-mj0123AB9CD".utf8)
      bytes.removeLast(18 + 16)
      let sum = name.reduce(0) { $0 + UInt16($1) }
      bytes += name + [0, 0, 0, 14, 0, 0, UInt8(sum >> 8), UInt8(sum & 0xFF)]
      bytes += [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    }
    try run("verify", path, "--key-file", fixturesKey)
      .expect(0, prints: "whose super-journal is missing: taken for committed")
  }

  @Test func `no database gets a name that is another file's`() throws {
    for suffix in ["-wal", "-shm", "-journal"] {
      try run("salvage", sealed, sealed + suffix, "--key-file", key)
        .expect(64, says: "a part of another database")
    }
    // The directory's own name is "D" and a byte that is not UTF-8.
    let name = Array(folder.path("D").utf8CString.dropLast()) + [CChar(-1), 0]
    mkdir(name, 0o700)
    symlink(name, folder.path("link"))
    try run("salvage", sealed, folder.path("link/new"), "--key-file", key)
      .expect(64, says: "not UTF-8")
    rmdir(name)
  }

  @Test func `database salvage copies the intact rows and reports the lost ones`() throws {
    try damagePage7()
    try run("salvage", sealed, folder.path("new"), "--key-file", key, "--json")
      .expect(65, prints: "\"isComplete\":false")
    try run("verify", folder.path("new"), "--key-file", key).expect(0)
    try run("salvage", sealed, folder.path("new"), "--key-file", key).expect(73)
    _ = try exportPlain("new", to: folder.path("out"), key)
    let count = try folder.shell("out", "SELECT count(*) BETWEEN 1800 AND 1999 FROM t")
    #expect(count == "1\n")
  }

  @Test func `a key can be an item of a vault`() throws {
    let home = try TestHome.secured()
    let store = ["set", "messaging", "database-key", "--binary"]
    try home.unlocked(store, input: folder.bytes("key")).expect(0)
    for (item, status) in [("database-key", 0), ("none", 66)] as [(String, Int32)] {
      try home.unlocked("database", "verify", sealed, "--key-item", "messaging/\(item)")
        .expect(status)
    }
  }

  @Test func `each wrong file or key ends with its exit code`() throws {
    #expect(try run("verify", sealed).status == 77)
    try run("verify", sealed, "--key-file", folder.path("other")).expect(77)
    try run("verify", sealed, "--key-file", folder.path("passphrase")).expect(77)
    try run("verify", folder.path("plain"), "--key-file", key).expect(65)
    try run("import", sealed, folder.path("no"), "--format", "plain", "--new-key-file", key)
      .expect(65)
    try run("verify", folder.path("none"), "--key-file", key).expect(66)
    try run("verify", sealed, "--key-file", key, "--key-fd", "3").expect(64)
    try exportPlain("sealed", to: folder.path("plain"), key).expect(73)
  }

  @Test(arguments: ["empty", "/dev/null", "pipe", "directory"])
  func `database import refuses a SQLCipher source without bytes`(name: String) throws {
    try folder.file("empty", [])
    #expect(mkfifo(folder.path("pipe"), 0o600) == 0)
    #expect(mkdir(folder.path("directory"), 0o700) == 0)
    let source = name.hasPrefix("/") ? name : folder.path(name)
    try run(
      "import", source, folder.path("new"), "--format", "sqlcipher4", "--key-file",
      folder.path("passphrase"), "--new-key-file", key
    ).expect(65, says: "\(source): this is not a database file")
    #expect(!FileManager.default.fileExists(atPath: folder.path("new")))
  }

  @Test func `an empty path ends with 64`() throws {
    let new = folder.path("new")
    for arguments in [
      ["verify", "", "--key-file", key],
      ["salvage", "", new, "--key-file", key],
      ["salvage", folder.path("plain"), "", "--key-file", key],
      ["export", "", new, "--format", "plain", "--key-file", key],
      ["import", folder.path("plain"), "", "--format", "plain", "--new-key-file", key],
    ] {
      try Tool.run(["database"] + arguments).expect(64, of: "\(arguments)")
    }
  }

  @Test func `an export of messages gets no name that SQLite uses`() throws {
    for name in ["messaging.db-journal", "messaging.db-wal", "a-shm"] {
      try Tool.run(["queue", "export", folder.path(name)]).expect(64, says: "as files of SQLite do")
    }
  }

  @Test func `an export through a symbolic link is accessible only to its owner`() throws {
    let out = folder.path("out")
    #expect(symlink("sealed", folder.path("link")) == 0)
    if geteuid() == 0 { #expect(chown(folder.url.path, 65534, 65534) == 0) }
    try exportPlain("link", to: out, key).expect(0)
    var status = stat()
    #expect(lstat(out, &status) == 0)
    #expect(status.st_mode & 0o7777 == 0o600)
    #expect(status.st_uid == (geteuid() == 0 ? 65534 : geteuid()))
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `a user who does not own a database salvages it into a file of their own`() throws {
    let (user, new) = (OtherUser(), folder.path("new"))
    let theirKey = try folder.file("their key", folder.bytes("key"))
    #expect(chown(theirKey, user.id, user.id) == 0)
    #expect(chmod(sealed, 0o644) == 0 && chmod(folder.url.path, 0o777) == 0)
    let salvage = ["database", "salvage", sealed, new, "--key-file", theirKey]
    try Tool.run(salvage, through: user.wrapper).expect(0)
    var status = stat()
    #expect(lstat(new, &status) == 0)
    #expect(status.st_uid == user.id && status.st_mode & 0o7777 == 0o600)
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `a database that was temporarily read-only is written again`() throws {
    let (user, home) = (OtherUser(), try TestHome.unsecured())
    try user.take(home)
    #expect(chmod(home.database, 0o400) == 0)
    #expect(try user.run(home, "queue", "stats").status == 74)
    #expect(chmod(home.database, 0o600) == 0)
    let outcome = try user.run(home, "queue", "receive", "c").expect(0)
    #expect(outcome.text == "first\n")
  }

  @Test func `queue rekey re-encrypts all messages and keeps the password`() throws {
    let home = try TestHome.secured()
    let before = try #require(FileManager.default.contents(atPath: home.database))
    try home.queue("rekey").expect(0)
    let after = try #require(FileManager.default.contents(atPath: home.database))
    #expect(after[4..<8] != before[4..<8], "the key check did not change")
    #expect(after[8..<16] == before[8..<16], "the file id changed")
    #expect(try home.queue("receive", "c").text == "first\n")
    try home.run("queue", "rekey", "--password-file", home.wrongFile).expect(77)
  }
}
