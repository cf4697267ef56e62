import Foundation
import SystemPackage
import Testing

@Suite struct DatabaseCommandTests {
  /// A plain database, keys, and what was made of them, in one folder.
  private struct Bench {
    let folder: ScratchFolder

    init() throws {
      folder = try ScratchFolder()
      for name in ["key", "other"] {
        try folder.secret(name, (0..<32).map { _ in UInt8.random(in: 0...255) })
      }
      try folder.secret("passphrase", Array("correct horse\n".utf8))
      try folder.shell(
        "plain",
        """
        CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
        WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(30)) FROM n;
        CREATE INDEX i ON t (text);
        """)
    }

    func run(_ arguments: String...) throws -> Tool.Outcome {
      try Tool.run(["database"] + arguments)
    }

    /// A sealed copy of the plain database.
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

  @Test func `plain in, plain out: equal dumps, and no plaintext between`() throws {
    let bench = try Bench()
    let sealed = try bench.sealed()
    #expect(!(try bench.folder.bytes("sealed").contains(Array("row 17".utf8))))
    let outcome = try bench.run(
      "export", sealed, bench.folder.path("out"), "--format", "plain", "--key-file", bench.key)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try bench.folder.shell("out", ".dump") == bench.folder.shell("plain", ".dump"))
    #expect(try bench.folder.shell("out", "SELECT count(*) FROM t") == "2000\n")
  }

  @Test(arguments: ["correct horse\n", "x'" + String(repeating: "0f", count: 32) + "'"])
  func `through SQLCipher 4 and back`(passphrase: String) throws {
    let bench = try Bench()
    try bench.folder.secret("passphrase", Array(passphrase.utf8))
    let sealed = try bench.sealed()
    let cipher = bench.folder.path("cipher")
    let export = try bench.run(
      "export", sealed, cipher, "--format", "sqlcipher4", "--key-file", bench.key,
      "--new-key-file", bench.folder.path("passphrase"))
    #expect(export.status == 0, "\(export.errors)")
    let wrong = try bench.run(
      "import", cipher, bench.folder.path("no"), "--format", "sqlcipher4", "--key-file",
      bench.key, "--new-key-file", bench.key)
    #expect(wrong.status == 77)
    #expect(!FileManager.default.fileExists(atPath: bench.folder.path("no")))
    let back = try bench.run(
      "import", cipher, bench.folder.path("back"), "--format", "sqlcipher4", "--key-file",
      bench.folder.path("passphrase"), "--new-key-file", bench.folder.path("other"))
    #expect(back.status == 0, "\(back.errors)")
    let out = try bench.run(
      "export", bench.folder.path("back"), bench.folder.path("out"), "--format", "plain",
      "--key-file", bench.folder.path("other"))
    #expect(out.status == 0, "\(out.errors)")
    #expect(try bench.folder.shell("out", ".dump") == bench.folder.shell("plain", ".dump"))
  }

  @Test func `verify says that all is whole, or which page is damaged`() throws {
    let bench = try Bench()
    let sealed = try bench.sealed()
    let whole = try bench.run("verify", sealed, "--key-file", bench.key, "--json")
    #expect(whole.status == 0, "\(whole.errors)")
    #expect(whole.text.contains("\"isClean\":true"))
    #expect(whole.text.contains("\"contentCheck\":\"done\""))
    let full = try bench.run("verify", sealed, "--key-file", bench.key).text
    #expect(full.hasSuffix("contents   in agreement\n"))
    let quick = try bench.run("verify", sealed, "--key-file", bench.key, "--quick")
    #expect(quick.status == 0 && quick.text.hasSuffix("contents   not checked\n"))
    try bench.damage("sealed", page: 7)
    let before = try bench.folder.bytes("sealed")
    let damaged = try bench.run("verify", sealed, "--key-file", bench.key, "--json")
    #expect(damaged.status == 65)
    #expect(damaged.text.contains("\"damagedPages\":[7]"))
    #expect(damaged.errors.contains("hint: "))
    let text = try bench.run("verify", sealed, "--key-file", bench.key).text
    #expect(text.contains("damaged    7\n"))
    #expect(try bench.folder.bytes("sealed") == before)
  }

  @Test(arguments: [
    ("log-first-page-header", "copies of page 1 have another file header, in frames"),
    ("log-header-salts", "holds 3 commits of another generation, of which the database lacks"),
  ])
  func `verify warns of a log that somebody changed, and ends with 0`(
    fixture: String, warning: String
  ) throws {
    let folder = try ScratchFolder()
    try folder.secret("key", [UInt8](repeating: 0x4B, count: 32))
    for suffix in ["db", "db-wal"] {
      let stored = DamageTests.fixtures.appendingPathComponent("databases/\(fixture).\(suffix)")
      try folder.secret("log.\(suffix)", [UInt8](try Data(contentsOf: stored)))
    }
    let outcome = try Tool.run([
      "database", "verify", folder.path("log.db"), "--key-file", folder.path("key"),
    ])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.text.contains("warning    ") && outcome.text.contains(warning))
  }

  @Test func `verify warns of a missing super-journal, and refuses one that cannot be one`() throws
  {
    let bench = try Bench()
    try bench.folder.secret("fixture-key", [UInt8](repeating: 0x4B, count: 32))
    let fixture = FilePath(#filePath).removingLastComponent().removingLastComponent()
      .removingLastComponent().appending("Fixtures/databases/super-journal-name.db").string
    let path = bench.folder.path("hot.db")
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: fixture + suffix, toPath: path + suffix)
    }
    let refused = try bench.run("verify", path, "--key-file", bench.folder.path("fixture-key"))
    #expect(refused.status == 65)
    #expect(refused.text.contains("journal    damaged, and the database needs it: "))
    try DamageTests.change(path + "-journal") { bytes in
      let name = Array("/a-mj0123AB9CD".utf8)
      bytes.removeLast(18 + 16)
      let sum = name.reduce(0) { $0 + UInt16($1) }
      bytes += name + [0, 0, 0, 14, 0, 0, UInt8(sum >> 8), UInt8(sum & 0xFF)]
      bytes += [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    }
    let warned = try bench.run("verify", path, "--key-file", bench.folder.path("fixture-key"))
    #expect(warned.status == 0, "\(warned.errors)")
    #expect(warned.text.contains("whose super-journal is missing: taken for committed"))
  }

  @Test func `salvage copies what is whole and says what is not`() throws {
    let bench = try Bench()
    let sealed = try bench.sealed()
    try bench.damage("sealed", page: 7)
    let salvaged = try bench.run(
      "salvage", sealed, bench.folder.path("new"), "--key-file", bench.key, "--json")
    #expect(salvaged.status == 65)
    #expect(salvaged.text.contains("\"isComplete\":false"))
    let verified = try bench.run("verify", bench.folder.path("new"), "--key-file", bench.key)
    #expect(verified.status == 0, "\(verified.errors)")
    let again = try bench.run(
      "salvage", sealed, bench.folder.path("new"), "--key-file", bench.key)
    #expect(again.status == 73)
    _ = try bench.run(
      "export", bench.folder.path("new"), bench.folder.path("out"), "--format", "plain",
      "--key-file", bench.key)
    let count = try #require(
      Int(try bench.folder.shell("out", "SELECT count(*) FROM t").trimmingCharacters(in: .newlines))
    )
    #expect((1800..<2000).contains(count))
  }

  @Test func `a key can be an item of a vault`() throws {
    let bench = try Bench()
    let home = try TestHome.secured()
    let stored = try home.unlocked(
      ["set", "messaging", "database-key", "--binary"], input: bench.folder.bytes("key"))
    #expect(stored.status == 0, "\(stored.errors)")
    let verified = try home.unlocked(
      "database", "verify", bench.sealed(), "--key-item", "messaging/database-key")
    #expect(verified.status == 0, "\(verified.errors)")
    let absent = try home.unlocked(
      "database", "verify", bench.folder.path("sealed"), "--key-item", "messaging/none")
    #expect(absent.status == 66)
  }

  @Test func `what is wrong with a file or a key has its exit code`() throws {
    let bench = try Bench()
    let sealed = try bench.sealed()
    #expect(try bench.run("verify", sealed).status == 77)
    #expect(try bench.run("verify", sealed, "--key-file", bench.folder.path("other")).status == 77)
    #expect(
      try bench.run("verify", sealed, "--key-file", bench.folder.path("passphrase")).status == 77)
    #expect(
      try bench.run("verify", bench.folder.path("plain"), "--key-file", bench.key).status == 65)
    #expect(
      try bench.run(
        "import", sealed, bench.folder.path("no"), "--format", "plain", "--new-key-file", bench.key
      ).status == 65)
    #expect(
      try bench.run("verify", bench.folder.path("none"), "--key-file", bench.key).status == 66)
    #expect(
      try bench.run("verify", sealed, "--key-file", bench.key, "--key-fd", "3").status == 64)
    #expect(
      try bench.run(
        "export", sealed, bench.folder.path("plain"), "--format", "plain", "--key-file",
        bench.key
      ).status == 73)
  }

  @Test(arguments: ["empty", "/dev/null", "pipe", "directory"])
  func `what holds no bytes is no SQLCipher database`(name: String) throws {
    let bench = try Bench()
    _ = try bench.folder.file("empty", [])
    #expect(mkfifo(bench.folder.path("pipe"), 0o600) == 0)
    #expect(mkdir(bench.folder.path("directory"), 0o700) == 0)
    let source = name.hasPrefix("/") ? name : bench.folder.path(name)
    let outcome = try bench.run(
      "import", source, bench.folder.path("new"), "--format", "sqlcipher4", "--key-file",
      bench.folder.path("passphrase"), "--new-key-file", bench.key)
    #expect(outcome.status == 65, "\(outcome.errors)")
    #expect(outcome.errors.contains("\(source): this is not a database file"))
    #expect(!FileManager.default.fileExists(atPath: bench.folder.path("new")))
  }

  @Test func `an empty path is no path`() throws {
    let bench = try Bench()
    let new = bench.folder.path("new")
    for arguments in [
      ["verify", "", "--key-file", bench.key],
      ["salvage", "", new, "--key-file", bench.key],
      ["salvage", bench.folder.path("plain"), "", "--key-file", bench.key],
      ["export", "", new, "--format", "plain", "--key-file", bench.key],
      ["import", bench.folder.path("plain"), "", "--format", "plain", "--new-key-file", bench.key],
    ] {
      let outcome = try Tool.run(["database"] + arguments)
      #expect(outcome.status == 64, "\(arguments): \(outcome.errors)")
    }
  }

  @Test func `an export of what a symbolic link names is for its owner alone`() throws {
    let bench = try Bench()
    _ = try bench.sealed()
    let (link, out) = (bench.folder.path("link"), bench.folder.path("out"))
    #expect(symlink("sealed", link) == 0)
    if geteuid() == 0 { #expect(chown(bench.folder.url.path, 65534, 65534) == 0) }
    let outcome = try bench.run(
      "export", link, out, "--format", "plain", "--key-file", bench.key)
    #expect(outcome.status == 0, "\(outcome.errors)")
    var status = stat()
    #expect(lstat(out, &status) == 0)
    #expect(status.st_mode & 0o7777 == 0o600)
    #expect(status.st_uid == (geteuid() == 0 ? 65534 : geteuid()))
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `who is not the owner of a database salvages it into a file of their own`() throws {
    let (bench, user) = (try ExchangeFixture(rowCount: 3), OtherUser())
    let (sealed, key, new) = (
      bench.folder.path("sealed"), bench.folder.path("their key"), bench.folder.path("new")
    )
    try bench.folder.secret("their key", try bench.folder.bytes("key"))
    #expect(chown(key, user.id, user.id) == 0)
    #expect(chmod(sealed, 0o644) == 0 && chmod(bench.folder.url.path, 0o777) == 0)
    let outcome = try Tool.run(
      ["database", "salvage", sealed, new, "--key-file", key], through: user.wrapper)
    #expect(outcome.status == 0, "\(outcome.errors)")
    var status = stat()
    #expect(lstat(new, &status) == 0)
    #expect(status.st_uid == user.id && status.st_mode & 0o7777 == 0o600)
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `a database that was read-only for a while is written again`() throws {
    let (user, home) = (OtherUser(), try TestHome.unsecured())
    try user.take(home)
    #expect(chmod(home.database, 0o400) == 0)
    #expect(try user.run(home, "queue", "stats").status == 74)
    #expect(chmod(home.database, 0o600) == 0)
    let outcome = try user.run(home, "queue", "receive", "c")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.text == "first\n")
  }

  @Test func `rekey seals all messages anew, and the password stays`() throws {
    let home = try TestHome.secured()
    let before = try #require(FileManager.default.contents(atPath: home.database))
    let rekeyed = try home.unlocked("queue", "rekey")
    #expect(rekeyed.status == 0, "\(rekeyed.errors)")
    let after = try #require(FileManager.default.contents(atPath: home.database))
    #expect(after[4..<8] != before[4..<8], "the key check did not change")
    #expect(after[8..<16] == before[8..<16], "the file id changed")
    #expect(try home.unlocked("queue", "receive", "c").text == "first\n")
    #expect(
      try home.run("queue", "rekey", "--password-file", home.folder.path("wrong")).status == 77)
  }
}
