import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct VaultCommandTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  @Test func `a vault is created, listed, shown and deleted`() throws {
    let home = try TestHome.fresh()
    try home.createVault()
    #expect(try home.run("list").text == "v\n")
    #expect(try home.run("list", "--json").text == "{\"vaults\":[\"v\"]}\n")
    try home.run("status", "v", "--json")
      .expect(0, prints: #""secured":true"#, #""iterationCount":300000,"kind":"password""#)
    #expect(try home.run("status", "v").text.contains("secured    yes\n"))
    #expect(try home.run("delete", "v").status == 0)
    #expect(try home.run("list").text == "")
  }

  @Test func `create refuses a vault that exists`() throws {
    let before = try home.contents()
    try home.run("create", "messaging", "--new-password-file", home.wrongFile).expect(73)
    #expect(try home.contents() == before)
  }

  @Test(arguments: [["status", "no"], ["items", "no"], ["delete", "no"], ["get", "no", "x"]])
  func `a missing vault ends with 66`(arguments: [String]) throws {
    try Tool.run(arguments + ["--home", home.path]).expect(66, says: "\nhint: ")
  }

  @Test func `change-password replaces the password, and the old one no longer opens the vault`()
    throws
  {
    let outcome = try home.unlocked(
      "change-password", "messaging", "--new-password-file", home.wrongFile)
    #expect(outcome.status == 0)
    #expect(
      try home.run("queue", "receive", "c", "--password-file", home.passwordFile).status == 77)
    let received = try home.run("queue", "receive", "c", "--password-file", home.wrongFile)
    #expect(received.text == "first\n")
  }

  @Test func `change-password refuses a messaging vault that is not secured`() throws {
    let home = try TestHome.unsecured()
    try home.run(
      "change-password", "messaging", "--new-password-file", home.passwordFile
    ).expect(78, says: "datavault secure")
  }

  @Test(arguments: ["option", "variable"])
  func `with a secured vault required, no command creates or opens an unsecured one`(
    way: String
  ) throws {
    let required = way == "option" ? ["--require-secured"] : []
    let environment = way == "option" ? [:] : ["DATAVAULT_REQUIRE_SECURED": "1"]
    func run(_ home: TestHome, _ arguments: [String]) throws -> Program {
      try Tool.run(
        arguments + required + ["--home", home.path], input: Array("a\n".utf8),
        environment: environment)
    }
    let fresh = try TestHome.fresh()
    try run(fresh, ["queue", "publish", "c"])
      .expect(66, says: "hint: check that this is the right home")
    #expect(!FileManager.default.fileExists(atPath: fresh.path))

    let home = try TestHome.unsecured()
    let before = try home.contents()
    for arguments in [
      ["queue", "publish", "c"], ["queue", "receive", "c"], ["queue", "verify"],
      ["queue", "rekey"], ["queue", "salvage"], ["set", "messaging", "token"],
      ["items", "messaging"], ["verify", "messaging"], ["rotate", "messaging"],
      ["queue", "import", home.passwordFile],
    ] {
      let outcome = try run(home, arguments)
      #expect(outcome.status == 78, "\(arguments): \(outcome.errors)")
      #expect(outcome.errors.contains("hint: run datavault secure"), "\(outcome.errors)")
    }
    #expect(try home.contents() == before)
    // What secures a vault is not refused.
    try home.run("import", home.vault("messaging"), "--as", "other").expect(0)
    try run(home, ["change-password", "other", "--new-password-file", home.passwordFile]).expect(0)
    let secured = try Tool.run(
      ["secure", "--new-password-file", home.passwordFile, "--home", home.path],
      environment: environment)
    #expect(secured.status == 0)
    let source = ["--password-file", home.passwordFile]
    #expect(try run(home, ["queue", "receive", "c"] + source).text == "first\n")
  }

  @Test func `a vault whose database is on a volume that is not mounted is not deleted`() throws {
    let home = try TestHome.secured()
    symlink(home.folder.path("volume/messaging.db"), home.folder.path("link"))
    unlink(home.database)
    rename(home.folder.path("link"), home.database)
    try home.run("delete", "messaging").expect(78)
    try home.queue("stats").expect(66, says: "mount the volume")
    // Nor is a copy of the vault, unless the vault is there.
    let (copy, aside) = (home.folder.path("copy"), home.folder.path("aside"))
    try home.run("export", "messaging", copy).expect(0)
    try home.unlocked("import", copy, "--as", "copy").expect(0)
    rename(home.vault("messaging"), aside)
    try home.run("delete", "copy").expect(78)
    try Data("damaged".utf8).write(to: URL(fileURLWithPath: home.vault("messaging")))
    try home.run("delete", "copy").expect(78)
    rename(aside, home.vault("messaging"))
    try home.run("delete", "copy").expect(0)
    unlink(home.database)
    try home.run("delete", "messaging").expect(0)
    // Nor does a first start replace the link.
    symlink(home.folder.path("volume/messaging.db"), home.database)
    #expect(try home.run("queue", "publish", "c", input: "a\n").status != 0)
    #expect(!FileManager.default.fileExists(atPath: home.database))
  }

  @Test(.enabled(if: geteuid() == 0))
  func `a vault that root exports belongs to root`() throws {
    let home = try TestHome.unsecured()
    let directory = home.folder.path("theirs")
    mkdir(directory, 0o755)
    chown(directory, 65534, 65534)
    try home.run("export", "messaging", directory + "/copy").expect(0)
    let owner = try FileManager.default.attributesOfItem(atPath: directory + "/copy")
    #expect(owner[.ownerAccountID] as? UInt == 0)
  }

  @Test func `an invalid value of DATAVAULT_REQUIRE_SECURED is refused`() throws {
    let home = try TestHome.fresh()
    func publish(required: String) throws -> Program {
      try home.run(
        "queue", "publish", "c", input: "a\n", environment: ["DATAVAULT_REQUIRE_SECURED": required])
    }
    try publish(required: "yes").expect(64)
    try home.run("doctor", environment: ["DATAVAULT_REQUIRE_SECURED": "yes"]).expect(64)
    #expect(!FileManager.default.fileExists(atPath: home.path))
    try publish(required: "0").expect(0)
  }

  @Test func `secure before the first start creates the vault`() throws {
    let home = try TestHome.fresh()
    #expect(try home.run("secure", "--new-password-file", home.passwordFile).status == 0)
    #expect(try home.run("queue", "publish", "c", input: "a\n").status == 77)
    #expect(try home.unlocked("queue", "publish", "c", input: "a\n").status == 0)
    #expect(try home.unlocked("queue", "receive", "c").text == "a\n")
  }

  @Test func `secure after the first start keeps the messages, and a second secure is refused`()
    throws
  {
    #expect(try home.queue("receive", "c").text == "first\n")
    try home.run("secure", "--new-password-file", home.wrongFile).expect(73)
    #expect(try home.unlocked("items", "messaging").status == 0)
  }

  @Test func `delete needs --force for a messaging vault whose database exists`() throws {
    try home.run("delete", "messaging").expect(78)
    #expect(try home.unlocked("items", "messaging").status == 0)
    #expect(try home.run("delete", "messaging", "--force").status == 0)
    try home.run("queue", "publish", "c", input: "a\n").expect(66)
    #expect(try home.run("list").text == "")
  }

  @Test func `items are stored unchanged, listed with their kind, and removed`() throws {
    let home = try TestHome.fresh()
    try home.createVault()
    let bytes: [UInt8] = [0, 0xFF, 0x0A]
    #expect(try home.unlocked(["set", "v", "bytes"], input: bytes).status == 0)
    #expect(try home.unlocked("set", "v", "text", input: "é\n").status == 0)
    #expect(try home.unlocked("set", "v", "raw", "--binary", input: "x").status == 0)
    #expect(try home.unlocked("get", "v", "bytes").output == bytes)
    #expect(try home.unlocked("get", "v", "text").text == "é\n")
    #expect(try home.unlocked("items", "v").text == "binary\tbytes\nbinary\traw\nstring\ttext\n")
    #expect(
      try home.unlocked("items", "v", "--json").text.contains(#"{"kind":"binary","name":"raw"}"#))
    #expect(try home.unlocked("unset", "v", "raw").status == 0)
    #expect(try home.unlocked("get", "v", "raw").status == 66)
    #expect(try home.unlocked("unset", "v", "raw").status == 66)
    #expect(try home.unlocked("set", "v", "", input: "x").status == 64)
    let longName = String(repeating: "n", count: 256)
    #expect(try home.unlocked("set", "v", longName, input: "x").status == 64)
    let large = [UInt8](repeating: 0, count: 1 << 20 | 1)
    #expect(try home.unlocked(["set", "v", "large"], input: large).status == 65)
  }

  @Test func `set ends with 75 and changes nothing while another process changes the vault`()
    async throws
  {
    let before = try home.contents()
    let lock = open(home.path + "/vaults/messaging.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(lock) }
    try #require(flock(lock, LOCK_EX) == 0)
    let files = ScratchFolder()
    let child = try home.start(
      "set", "messaging", "x", descriptors: [2: .writing(files.path("errors"))])
    // The command waits for ten seconds. This wait blocks no thread of the tests.
    var status: Int32 = 0
    try await eventually { waitpid(child.id, &status, WNOHANG) != 0 }
    #expect((status >> 8) & 0xFF == 75)
    let errors = files.contents(of: "errors") ?? ""
    #expect(errors.contains("changing vault 'messaging'") && errors.contains("hint: try again"))
    #expect(try home.contents() == before)
  }
}
