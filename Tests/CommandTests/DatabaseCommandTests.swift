import Foundation
import SystemPackage
import TestSupport
import Testing

@Suite struct DatabaseCommandTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture() }

  /// A folder with a plain database, keys and the files that commands make from them.
  private struct Fixture {
    let folder: ScratchFolder

    init() throws {
      folder = ScratchFolder()
      for name in ["key", "other"] {
        try folder.file(name, (0..<32).map { _ in UInt8.random(in: 0...255) })
      }
      try folder.file("passphrase", Array("correct horse\n".utf8))
      try folder.shell(
        "plain",
        """
        CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
        WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(30)) FROM n;
        CREATE INDEX i ON t (text);
        """)
    }

    func run(_ arguments: String...) throws -> Program { try Tool.run(["database"] + arguments) }

    /// Makes a sealed copy of the plain database and returns its path.
    func sealed(_ name: String = "sealed") throws -> String {
      let outcome = try run(
        "import", folder.path("plain"), folder.path(name), "--format", "plain", "--new-key-file",
        folder.path("key"))
      #expect(outcome.status == 0, "\(outcome.errors)")
      return folder.path(name)
    }

    func damage(_ name: String, page: Int) throws {
      try DamageTests.change(folder.path(name)) { $0[(page - 1) * 4096 + 100] ^= 1 }
    }

    var key: String { folder.path("key") }
  }

  @Test func `import and export give equal dumps, with no plaintext in the sealed file`() throws {
    let sealed = try fixture.sealed()
    #expect(!(try fixture.folder.bytes("sealed").contains(Array("row 17".utf8))))
    let outcome = try fixture.run(
      "export", sealed, fixture.folder.path("out"), "--format", "plain", "--key-file", fixture.key)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try fixture.folder.shell("out", ".dump") == fixture.folder.shell("plain", ".dump"))
    #expect(try fixture.folder.shell("out", "SELECT count(*) FROM t") == "2000\n")
  }

  @Test(arguments: ["correct horse\n", "x'" + String(repeating: "0f", count: 32) + "'"])
  func `export to SQLCipher 4 and import back give equal dumps`(passphrase: String) throws {
    try fixture.folder.file("passphrase", Array(passphrase.utf8))
    let sealed = try fixture.sealed()
    let cipher = fixture.folder.path("cipher")
    let export = try fixture.run(
      "export", sealed, cipher, "--format", "sqlcipher4", "--key-file", fixture.key,
      "--new-key-file", fixture.folder.path("passphrase"))
    #expect(export.status == 0, "\(export.errors)")
    let wrong = try fixture.run(
      "import", cipher, fixture.folder.path("no"), "--format", "sqlcipher4", "--key-file",
      fixture.key, "--new-key-file", fixture.key)
    #expect(wrong.status == 77)
    #expect(!FileManager.default.fileExists(atPath: fixture.folder.path("no")))
    let back = try fixture.run(
      "import", cipher, fixture.folder.path("back"), "--format", "sqlcipher4", "--key-file",
      fixture.folder.path("passphrase"), "--new-key-file", fixture.folder.path("other"))
    #expect(back.status == 0, "\(back.errors)")
    let out = try fixture.run(
      "export", fixture.folder.path("back"), fixture.folder.path("out"), "--format", "plain",
      "--key-file", fixture.folder.path("other"))
    #expect(out.status == 0, "\(out.errors)")
    #expect(try fixture.folder.shell("out", ".dump") == fixture.folder.shell("plain", ".dump"))
  }

  @Test func `database verify reports an intact database, or the damaged page`() throws {
    let sealed = try fixture.sealed()
    let whole = try fixture.run("verify", sealed, "--key-file", fixture.key, "--json").expect(0)
    #expect(whole.text.contains("\"isClean\":true"))
    #expect(whole.text.contains("\"contentCheck\":\"done\""))
    let full = try fixture.run("verify", sealed, "--key-file", fixture.key).text
    #expect(full.hasSuffix("contents   consistent\n"))
    let quick = try fixture.run("verify", sealed, "--key-file", fixture.key, "--quick")
    #expect(quick.status == 0 && quick.text.hasSuffix("contents   not checked\n"))
    try fixture.damage("sealed", page: 7)
    let before = try fixture.folder.bytes("sealed")
    let damaged = try fixture.run("verify", sealed, "--key-file", fixture.key, "--json").expect(65)
    #expect(damaged.text.contains("\"damagedPages\":[7]"))
    #expect(damaged.errors.contains("hint: "))
    let text = try fixture.run("verify", sealed, "--key-file", fixture.key).text
    #expect(text.contains("damaged    7\n"))
    #expect(try fixture.folder.bytes("sealed") == before)
  }

  @Test(arguments: [
    ("log-first-page-header", "copies of page 1 have another file header, in frames"),
    ("log-header-salts", "holds 3 commits of another generation, of which the database lacks"),
  ])
  func `database verify warns of a changed log and ends with 0`(
    fixture: String, warning: String
  ) throws {
    let folder = ScratchFolder()
    try folder.file("key", [UInt8](repeating: 0x4B, count: 32))
    for suffix in ["db", "db-wal"] {
      let stored = Repository.path("Fixtures/databases/\(fixture).\(suffix)")
      try folder.file("log.\(suffix)", Data(contentsOf: URL(fileURLWithPath: stored)))
    }
    let outcome = try Tool.run([
      "database", "verify", folder.path("log.db"), "--key-file", folder.path("key"),
    ])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.text.contains("warning    ") && outcome.text.contains(warning))
  }

  @Test func `database verify warns of a missing super-journal, and refuses an invalid one`() throws
  {
    try fixture.folder.file("fixture-key", [UInt8](repeating: 0x4B, count: 32))
    let stored = Repository.path("Fixtures/databases/super-journal-name.db")
    let path = fixture.folder.path("hot.db")
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: stored + suffix, toPath: path + suffix)
    }
    let refused = try fixture.run("verify", path, "--key-file", fixture.folder.path("fixture-key"))
    #expect(refused.status == 65)
    #expect(refused.text.contains("journal    damaged, and the database needs it: "))
    try DamageTests.change(path + "-journal") { bytes in
      let name = Array("/a-mj0123AB9CD".utf8)
      bytes.removeLast(18 + 16)
      let sum = name.reduce(0) { $0 + UInt16($1) }
      bytes += name + [0, 0, 0, 14, 0, 0, UInt8(sum >> 8), UInt8(sum & 0xFF)]
      bytes += [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    }
    let warned = try fixture.run("verify", path, "--key-file", fixture.folder.path("fixture-key"))
    #expect(warned.status == 0, "\(warned.errors)")
    #expect(warned.text.contains("whose super-journal is missing: taken for committed"))
  }

  @Test func `database salvage copies the intact rows and reports the lost ones`() throws {
    let sealed = try fixture.sealed()
    try fixture.damage("sealed", page: 7)
    let salvaged = try fixture.run(
      "salvage", sealed, fixture.folder.path("new"), "--key-file", fixture.key, "--json")
    #expect(salvaged.status == 65)
    #expect(salvaged.text.contains("\"isComplete\":false"))
    try fixture.run("verify", fixture.folder.path("new"), "--key-file", fixture.key).expect(0)
    let again = try fixture.run(
      "salvage", sealed, fixture.folder.path("new"), "--key-file", fixture.key)
    #expect(again.status == 73)
    _ = try fixture.run(
      "export", fixture.folder.path("new"), fixture.folder.path("out"), "--format", "plain",
      "--key-file", fixture.key)
    let count = try #require(
      Int(
        try fixture.folder.shell("out", "SELECT count(*) FROM t").trimmingCharacters(in: .newlines))
    )
    #expect((1800..<2000).contains(count))
  }

  @Test func `a key can be an item of a vault`() throws {
    let home = try TestHome.secured()
    let stored = try home.unlocked(
      ["set", "messaging", "database-key", "--binary"], input: fixture.folder.bytes("key"))
    #expect(stored.status == 0, "\(stored.errors)")
    let verified = try home.unlocked(
      "database", "verify", fixture.sealed(), "--key-item", "messaging/database-key")
    #expect(verified.status == 0, "\(verified.errors)")
    let absent = try home.unlocked(
      "database", "verify", fixture.folder.path("sealed"), "--key-item", "messaging/none")
    #expect(absent.status == 66)
  }

  @Test func `each wrong file or key ends with its exit code`() throws {
    let sealed = try fixture.sealed()
    #expect(try fixture.run("verify", sealed).status == 77)
    try fixture.run("verify", sealed, "--key-file", fixture.folder.path("other")).expect(77)
    #expect(
      try fixture.run("verify", sealed, "--key-file", fixture.folder.path("passphrase")).status
        == 77)
    #expect(
      try fixture.run("verify", fixture.folder.path("plain"), "--key-file", fixture.key).status
        == 65)
    try fixture.run(
      "import", sealed, fixture.folder.path("no"), "--format", "plain", "--new-key-file",
      fixture.key
    ).expect(65)
    #expect(
      try fixture.run("verify", fixture.folder.path("none"), "--key-file", fixture.key).status == 66
    )
    try fixture.run("verify", sealed, "--key-file", fixture.key, "--key-fd", "3").expect(64)
    try fixture.run(
      "export", sealed, fixture.folder.path("plain"), "--format", "plain", "--key-file",
      fixture.key
    ).expect(73)
  }

  @Test(arguments: ["empty", "/dev/null", "pipe", "directory"])
  func `database import refuses a SQLCipher source without bytes`(name: String) throws {
    try fixture.folder.file("empty", [])
    #expect(mkfifo(fixture.folder.path("pipe"), 0o600) == 0)
    #expect(mkdir(fixture.folder.path("directory"), 0o700) == 0)
    let source = name.hasPrefix("/") ? name : fixture.folder.path(name)
    try fixture.run(
      "import", source, fixture.folder.path("new"), "--format", "sqlcipher4", "--key-file",
      fixture.folder.path("passphrase"), "--new-key-file", fixture.key
    ).expect(65, says: "\(source): this is not a database file")
    #expect(!FileManager.default.fileExists(atPath: fixture.folder.path("new")))
  }

  @Test func `an empty path ends with 64`() throws {
    let new = fixture.folder.path("new")
    for arguments in [
      ["verify", "", "--key-file", fixture.key],
      ["salvage", "", new, "--key-file", fixture.key],
      ["salvage", fixture.folder.path("plain"), "", "--key-file", fixture.key],
      ["export", "", new, "--format", "plain", "--key-file", fixture.key],
      [
        "import", fixture.folder.path("plain"), "", "--format", "plain", "--new-key-file",
        fixture.key,
      ],
    ] {
      let outcome = try Tool.run(["database"] + arguments)
      #expect(outcome.status == 64, "\(arguments): \(outcome.errors)")
    }
  }

  @Test func `an export through a symbolic link is accessible only to its owner`() throws {
    _ = try fixture.sealed()
    let (link, out) = (fixture.folder.path("link"), fixture.folder.path("out"))
    #expect(symlink("sealed", link) == 0)
    if geteuid() == 0 { #expect(chown(fixture.folder.url.path, 65534, 65534) == 0) }
    let outcome = try fixture.run(
      "export", link, out, "--format", "plain", "--key-file", fixture.key)
    #expect(outcome.status == 0, "\(outcome.errors)")
    var status = stat()
    #expect(lstat(out, &status) == 0)
    #expect(status.st_mode & 0o7777 == 0o600)
    #expect(status.st_uid == (geteuid() == 0 ? 65534 : geteuid()))
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `a user who does not own a database salvages it into a file of their own`() throws {
    let (fixture, user) = (try ExchangeFixture(rowCount: 3), OtherUser())
    let (sealed, key, new) = (
      fixture.folder.path("sealed"), fixture.folder.path("their key"), fixture.folder.path("new")
    )
    try fixture.folder.file("their key", try fixture.folder.bytes("key"))
    #expect(chown(key, user.id, user.id) == 0)
    #expect(chmod(sealed, 0o644) == 0 && chmod(fixture.folder.url.path, 0o777) == 0)
    let outcome = try Tool.run(
      ["database", "salvage", sealed, new, "--key-file", key], through: user.wrapper)
    #expect(outcome.status == 0, "\(outcome.errors)")
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
    try home.unlocked("queue", "rekey").expect(0)
    let after = try #require(FileManager.default.contents(atPath: home.database))
    #expect(after[4..<8] != before[4..<8], "the key check did not change")
    #expect(after[8..<16] == before[8..<16], "the file id changed")
    #expect(try home.unlocked("queue", "receive", "c").text == "first\n")
    try home.run("queue", "rekey", "--password-file", home.folder.path("wrong")).expect(77)
  }
}
