import Foundation
import Glibc
import TestSupport
import Testing

/// Queue commands and `doctor` beside files of another kind than SQLite's own.
@Suite struct MisplacedFileTests {
  private let home: TestHome

  init() throws { home = try TestHome.unsecured() }

  @Test(arguments: ["publish", "history", "receive"])
  func `a queue command names a directory in the journal's place`(command: String) throws {
    mkdir(home.database + "-journal", 0o700)
    let outcome = try home.run("queue", command, "c", input: "second\n")
      .expect(74, says: "messaging.db-journal is not a regular file")
    #expect(!outcome.errors.contains("killed writer"))
  }

  @Test func `queue salvage refuses a directory in the index's place and changes nothing`() throws {
    mkdir(home.database + "-shm", 0o700)
    let before = try home.contents()
    try home.run("queue", "salvage").expect(74, says: "messaging.db-shm is not a regular file")
    #expect(try home.contents() == before)
  }

  @Test func `doctor reports an interrupted salvage, and the next opening completes it`() throws {
    #expect(try home.run("queue", "salvage").status == 0)
    // A kill after the vault was bound to the copy, and before the files were renamed.
    let files = FileManager.default
    try files.moveItem(atPath: home.database, toPath: home.database + ".salvaged")
    try files.moveItem(atPath: home.database + ".damaged-1", toPath: home.database)
    let outcome = try home.run("doctor")
      .expect(0, prints: "was interrupted; the next command that opens the queue completes it")
    #expect(!outcome.text.contains("belongs to"))
    try home.run("queue", "history", "c")
      .expect(0, says: "an interrupted salvage was completed", prints: "first\n")
  }

  @Test func `queue salvage does not call an earlier one that it completes free of losses`() throws
  {
    #expect(try home.run("queue", "salvage").status == 0)
    try FileManager.default.moveItem(atPath: home.database, toPath: home.database + ".salvaged")
    // A change of key would leave the damaged files under a former key.
    for command in ["rekey", "accept-rollback"] {
      try home.run("queue", command).expect(65, says: "run datavault queue salvage")
    }
    try home.run("secure", "--new-password-file", home.passwordFile)
      .expect(65, says: "run datavault queue salvage")
    try home.run("queue", "salvage")
      .expect(65, says: "has lost is not known", prints: "messaging.db.damaged-1\n")
  }

  @Test func `doctor suggests no change of permissions for a symbolic link`() throws {
    try? FileManager.default.removeItem(atPath: home.database + "-notify")
    symlink(home.passwordFile, home.database + "-notify")
    #expect(try !home.run("doctor").text.contains("chmod 600"))
  }

  @Test func `a directory in the place of a vault's temporary file ends with 74, as a write does`()
    throws
  {
    let home = try TestHome.secured()
    mkdir(home.path + "/vaults/.messaging.vault.new", 0o700)
    #expect(try home.unlocked("set", "messaging", "name", input: "value").status == 74)
    try home.run("doctor", "--json")
      .expect(74, prints: #""kind":"writeFailed""#, "remove the directory")
  }
}
