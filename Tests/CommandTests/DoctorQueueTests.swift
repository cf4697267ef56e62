import Foundation
import Glibc
import TestSupport
import Testing

/// What keeps the queue from being used: a missing, foreign, damaged or older database or vault.
extension DoctorCommandTests {
  @Test
  func `doctor ends with 66 for a vault without its database and for a database without its vault`()
    throws
  {
    let aside = home.folder.path("aside")
    rename(home.database, aside)
    try expectFindings(["databaseMissing -"], status: 66, says: "mount the volume")
    rename(aside, home.database)
    try expectFindings([])
    unlink(home.vault("messaging"))
    try expectFindings(["keyMissing -"], status: 66)
  }

  @Test func `doctor tells damage of the database's header from another database`() throws {
    let database = try Data(contentsOf: URL(fileURLWithPath: home.database))
    for byte in [0, 3, 4, 9] {
      var damaged = database
      damaged[byte] ^= 0xFF
      try damaged.write(to: URL(fileURLWithPath: home.database))
      try expectFindings(
        ["damaged -"], status: 65, says: "queue salvage", in: home.unlocked("doctor", "--json"))
    }
    try database.write(to: URL(fileURLWithPath: home.database))
    try expectFindings([], in: home.unlocked("doctor", "--json"))
  }

  @Test func `doctor opens a vault that has no database yet, if it can`() throws {
    let home = try TestHome.fresh()
    let password = try home.folder.file("password", Array("correct horse battery staple".utf8))
    let wrong = try home.folder.file("wrong", Array("another horse battery staple".utf8))
    try home.run("secure", "--new-password-file", password).expect(0)
    try home.run("doctor").expect(0)
    try home.run("doctor", "--password-file", password).expect(0)
    try home.run("doctor", "--password-file", wrong).expect(77)
    try home.run("status", "messaging", "--json").expect(0, prints: #""failedAttempts":1"#)
  }

  @Test func `doctor ends with 66 or 78 where the queue must not be used with a standard vault`()
    throws
  {
    for (home, kind, status) in [
      (try TestHome.fresh(), "vaultMissing", 66), (try TestHome.unsecured(), "notSecured", 78),
    ] as [(TestHome, String, Int32)] {
      try home.run("doctor", "--json", "--require-secured")
        .expect(status, prints: #""kind":"\#(kind)""#)
      #expect(try home.run("queue", "stats", "--require-secured").status == status)
      #expect(try home.run("doctor").status == 0)
    }
    // The policy of a vault that is not secured can forbid it, too.
    let home = try TestHome.unsecured()
    try home.run("policy", "set", "messaging", "--no-standard-password").expect(0)
    for command in [["doctor"], ["queue", "stats"]] {
      try Tool.run(command + ["--home", home.path]).expect(78, says: "run `datavault secure`")
    }
  }

  @Test(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
  func `doctor ends with 66 for a home that is missing although a session opens its vault`() throws
  {
    try home.unlocked("unlock", "messaging", "--for", "60s").expect(0)
    let aside = home.folder.path("aside")
    // The home was unmounted; then it is a link to a directory that is missing.
    rename(home.path, aside)
    try expectFindings(["vaultMissing -"], status: 66, says: "is mounted")
    #expect(try home.run("queue", "publish", "c", input: "second\n").status == 66)
    symlink(aside, home.path)
    try home.run("lock", "messaging").expect(0)
    try home.unlocked("unlock", "messaging", "--for", "60s").expect(0)
    rename(aside, aside + "-2")
    try expectFindings(["vaultMissing -"], status: 66)
    try home.run("lock", "messaging").expect(0)
    try expectFindings([])
  }

  @Test(arguments: ["messaging.db.creating", "messaging.db.salvaged", ".messaging.db.new"])
  func `doctor reports a directory in the place of an unfinished database`(name: String) throws {
    mkdir(home.path + "/" + name, 0o700)
    try expectFindings(["inputOutput -"], status: 74, says: "move it away")
  }

  @Test func `doctor reports a rollback if the vault opens, otherwise that it cannot tell`()
    throws
  {
    let older = try Data(contentsOf: URL(fileURLWithPath: home.database))
    #expect(try home.queue("publish", "c", input: "second\n").status == 0)
    #expect(try home.unlocked("doctor").text.contains("rolled back") == false)
    try older.write(to: URL(fileURLWithPath: home.database))
    chmod(home.database, 0o600)
    for suffix in ["-wal", "-shm"] { unlink(home.database + suffix) }
    let before = try home.contents()
    try home.run("doctor", "--json")
      .expect(0, prints: #""kind":"rollbackNotChecked""#, "the messaging vault is locked")
    chmod(home.path, 0o777)
    let wrong = try home.run("doctor", "--json", "--password-file", home.wrongFile).expect(77)
    #expect(
      try kinds(wrong) == ["permissionsTooOpen -"], "the findings are not printed before the error")
    chmod(home.path, 0o700)
    #expect(try home.run("doctor", "--password-file", home.wrongFile).expect(77).text.isEmpty)
    try expectFindings(
      ["rolledBack -"], status: 65, says: "datavault queue accept-rollback",
      in: home.unlocked("doctor", "--json"))
    #expect(try home.contents() == before)
    // Neither does a copy under the name of a salvaged database, nor another vault's error.
    rename(home.database, home.database + ".salvaged")
    try expectFindings(
      ["databaseMissing -"], status: 66, in: home.unlocked("doctor", "--json"))
    rename(home.database + ".salvaged", home.database)
    try put([1, 2, 3], as: "a", in: home)
    try expectFindings(
      ["damaged a", "rolledBack -"], status: 65, in: home.unlocked("doctor", "--json"))
    unlink(home.vault("a"))
    chmod(home.vault("messaging"), 0o644)
    try home.unlocked("doctor", "--json").expect(77, prints: #""kind":"rollbackNotChecked""#)
  }

  @Test func `doctor reports a rollback of a queue that is not secured`() throws {
    let home = try TestHome.unsecured()
    let older = try Data(contentsOf: URL(fileURLWithPath: home.database))
    #expect(try home.run("queue", "publish", "c", input: "second\n").status == 0)
    try older.write(to: URL(fileURLWithPath: home.database))
    chmod(home.database, 0o600)
    try expectFindings(
      ["standardPassword messaging", "rolledBack -"], status: 65, in: home.run("doctor", "--json"))
  }
}
