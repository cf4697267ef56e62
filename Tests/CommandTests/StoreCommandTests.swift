import Foundation
import TestSupport
import Testing

@Suite struct StoreCommandTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  @Test func `verify does not open the vault without a password, and opens it with one`() throws {
    let before = try home.contents()
    let closed = try home.run("verify", "messaging", "--json")
      .expect(0, prints: #""vault":"messaging""#)
    #expect(closed.text.hasPrefix(#"{"authentic":false,"byteCount":"#))
    #expect(try home.run("verify", "messaging").text.contains("contents   not opened"))
    try home.unlocked("verify", "messaging", "--json")
      .expect(0, prints: #""authentic":true"#, #""items":0"#)
    #expect(try home.unlocked("verify", "messaging").text.contains("authentic: 0 items"))
    try home.run("verify", "messaging", "--password-file", home.wrongFile).expect(77)
    #expect(try home.run("verify", "none").status == 66)
    #expect(try home.contents() == before)
  }

  @Test func `verify opens a vault that is not secured`() throws {
    let home = try TestHome.unsecured()
    try home.run("verify", "messaging", "--json")
      .expect(0, says: "not secured", prints: #""authentic":true"#)
  }

  @Test func `verify finds a changed byte without a password`() throws {
    try DamageTests.change(home.vault("messaging")) { $0[$0.count / 2] ^= 1 }
    try home.run("verify", "messaging").expect(65, says: "\nhint: ")
  }

  @Test func `export and import copy a vault to another home and overwrite none`() throws {
    let other = try TestHome.fresh()
    let file = home.folder.path("exported")
    #expect(try home.run("export", "messaging", file).status == 0)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    #expect(try bytes == Data(contentsOf: URL(fileURLWithPath: home.vault("messaging"))))
    #expect(try home.run("export", "messaging", file).status == 73)

    #expect(try other.run("import", file).status == 0)
    #expect(try Data(contentsOf: URL(fileURLWithPath: other.vault("messaging"))) == bytes)
    try other.run("import", file).expect(73, says: "--as")
    #expect(try other.run("import", other.folder.path("none")).status == 66)
    #expect(try other.run("import", other.folder.path("password")).status == 65)
  }

  @Test(arguments: [true, false])
  func `where a secured vault is required, no other is imported`(byOption: Bool) throws {
    let unsecured = try TestHome.unsecured()
    let file = unsecured.vault("messaging")
    let home = try TestHome.fresh()
    let option = byOption ? ["--require-secured"] : []
    let environment = byOption ? [:] : ["DATAVAULT_REQUIRE_SECURED": "1"]
    for arguments in [["import", file], ["import", file, "--as", "other"]] {
      try home.run(arguments + option, environment: environment).expect(78)
      #expect(!FileManager.default.fileExists(atPath: home.path))
    }
    let secured = self.home.vault("messaging")
    try home.run(["import", secured] + option, environment: environment).expect(0)
  }

  @Test func `import under another name needs the vault's password, and keeps it`() throws {
    let file = home.folder.path("exported")
    #expect(try home.unlocked("set", "messaging", "token", input: "s3cret").status == 0)
    #expect(try home.run("export", "messaging", file).status == 0)
    #expect(try home.run("import", file, "--as", "copy").status == 77)
    try home.run("import", file, "--as", "copy", "--password-file", home.wrongFile).expect(77)
    #expect(try home.run("import", file, "--as", "No").status == 64)
    #expect(try home.unlocked("import", file, "--as", "copy").status == 0)
    #expect(try home.run("list").text == "copy\nmessaging\n")
    #expect(try home.unlocked("get", "copy", "token").text == "s3cret")
  }

  @Test func `without a session bus the Secret Service is unavailable, not empty`() throws {
    let home = try TestHome.fresh()
    let environment = ["DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": home.folder.path("none")]
    for arguments in [
      ["list"], ["status", "messaging"], ["clean-up-first-run"], ["delete", "messaging"],
      ["create", "v", "--new-password-file", home.passwordFile],
    ] {
      let outcome = try home.run(
        arguments + ["--store", "secret-service"], environment: environment
      ).expect(69, of: "\(arguments)", says: "\nhint: ")
      #expect(outcome.output.isEmpty)
    }
    #expect(!FileManager.default.fileExists(atPath: home.path))
  }
}
