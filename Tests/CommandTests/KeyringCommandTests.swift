import Foundation
import PrivateKeyring
import TestSupport
import Testing

@Suite(.enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)))
struct KeyringCommandTests {
  private let home: TestHome
  private let keyring: PrivateKeyring

  init() throws {
    home = try TestHome.fresh()
    keyring = try PrivateKeyring()
    try keyring.startUnlocked()
  }

  private func run(
    _ arguments: String..., store: String = "secret-service", input: String = ""
  ) throws -> Program {
    try home.run(arguments + ["--store", store], input: input, environment: keyring.environment)
  }

  private var password: String { home.passwordFile }

  @Test func `a queue works with its vault in the keyring`() throws {
    #expect(try run("secure", "--new-password-file", password).status == 0)
    try run("queue", "publish", "c", "--password-file", password, input: "one\n").expect(0)
    #expect(try run("queue", "receive", "c", "--password-file", password).text == "one\n")
    #expect(try run("list").text == "messaging\n")
    #expect(try run("list", store: "file").text == "")
    #expect(try run("status", "messaging", "--json").text.contains(#""state":"bound""#))
    #expect(try run("verify", "messaging", "--password-file", password).status == 0)
    #expect(!FileManager.default.fileExists(atPath: home.vault("messaging")))
    // The file store finds a queue without its vault.
    try run("queue", "receive", "c", "--password-file", password, store: "file").expect(66)
  }

  @Test func `a vault moved from files into the keyring opens its queue`() throws {
    try run("secure", "--new-password-file", password, store: "file").expect(0)
    try run("queue", "publish", "c", "--password-file", password, store: "file", input: "one\n")
      .expect(0)
    let file = home.folder.path("exported")
    #expect(try run("export", "messaging", file, store: "file").status == 0)
    #expect(try run("import", file).status == 0)
    #expect(try run("import", file).status == 73)
    #expect(try run("queue", "receive", "c", "--password-file", password).text == "one\n")
  }

  @Test func `clean-up-first-run is refused while the keyring is locked or unavailable`() throws {
    #expect(try run("secure", "--new-password-file", password).status == 0)
    try run("queue", "publish", "c", "--password-file", password, input: "one\n").expect(0)
    // A new installation has an empty home, but the keyring still has the vault.
    try FileManager.default.removeItem(atPath: home.path)

    keyring.stopKeyring()
    try run("clean-up-first-run").expect(69, says: "\nhint: ")
    #expect(try run("secure", "--new-password-file", password).status == 69)

    try keyring.startLocked()
    try run("clean-up-first-run").expect(77, says: "locked")
    #expect(try run("list").status == 77)
    #expect(try run("secure", "--new-password-file", password).status == 77)
    #expect(try run("queue", "publish", "c", input: "two\n").status == 77)

    keyring.stopKeyring()
    try keyring.startUnlocked()
    #expect(try run("list").text == "messaging\n")
    #expect(try run("clean-up-first-run").status == 0)
    #expect(try run("list").text == "")
    #expect(try run("clean-up-first-run").status == 0)
  }
}
