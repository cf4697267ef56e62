import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct SlotCommandTests {
  private let home: TestHome

  /// Makes a home with the vault `v`, which has one item, and its recovery code in the file `code`.
  init() throws {
    home = try TestHome.fresh()
    try home.createVault()
    #expect(try home.unlocked("set", "v", "name", input: "value").status == 0)
    let added = try home.unlocked("slots", "add", "v", "paper", "--recovery-code").expect(0)
    #expect(added.errors == "")
    try home.folder.file("code", added.output)
  }

  /// Makes a key file that only its owner can read.
  private func keyFile(
    _ name: String, _ bytes: [UInt8] = Array(0x20...0x3F), mode: Int = 0o600
  ) throws -> String {
    let path = try home.folder.file(name, bytes)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    return path
  }

  private func byCode(_ home: TestHome, _ arguments: String...) throws -> Program {
    try Tool.run(
      arguments + ["--home", home.path, "--recovery-code-file", home.folder.path("code")])
  }

  @Test func `slots add prints only the recovery code, which opens the vault`() throws {
    let code = String(decoding: try home.folder.bytes("code"), as: UTF8.self)
    #expect(code.wholeMatch(of: /([0-9A-HJKMNP-TV-Z]{4}-){8}[0-9A-HJKMNP-TV-Z]{4}\n/) != nil)
    #expect(try byCode(home, "get", "v", "name").text == "value")
    let typed = try Tool.run(
      ["get", "v", "name", "--home", home.path, "--recovery-code-fd", "3"],
      descriptors: [3: Array(code.lowercased().replacing("-", with: " ").utf8)])
    #expect(typed.text == "value")
    for files in try home.contents().values {
      #expect(!String(decoding: files, as: UTF8.self).contains(code.prefix(9)))
    }
  }

  @Test func `a recovery code replaces a forgotten password`() throws {
    let new = try home.folder.file("new", Array("new password".utf8))
    #expect(try byCode(home, "change-password", "v", "--new-password-file", new).status == 0)
    #expect(try home.run("get", "v", "name", "--password-file", new).text == "value")
    #expect(try home.unlocked("get", "v", "name").status == 77)
    #expect(try byCode(home, "get", "v", "name").text == "value")
  }

  @Test func `an error reports a mistyped code without repeating it`() throws {
    let code = String(decoding: try home.folder.bytes("code"), as: UTF8.self)
    let last = code.dropLast().last == "0" ? "1" : "0"
    let faults = [
      (String(code.dropLast(2)) + last, "mistyped"), (String(code.dropLast(2)), "35 characters"),
      (code.replacing("-", with: "+"), "is not valid"), ("", "is empty"),
    ]
    for (typed, words) in faults {
      try home.folder.file("code", Array(typed.utf8))
      let outcome = try byCode(home, "get", "v", "name").expect(77, says: words)
      for group in code.dropLast().split(separator: "-") {
        #expect(!outcome.errors.contains(group))
      }
    }
    let other = "0410-6105-0R3G-G28A-1C60-T3GF-208H-44RM-W4QG"
    try home.folder.file("code", Array(other.utf8))
    try byCode(home, "get", "v", "name").expect(77, says: "does not open vault 'v'")
  }

  @Test func `a key file opens the vault with all of its bytes`() throws {
    // A newline as the last byte is part of the key.
    let bytes = Array(0x20...0x3E) + [0x0A] as [UInt8]
    let key = try keyFile("key", bytes)
    #expect(try byCode(home, "slots", "add", "v", "usb", "--new-slot-key-file", key).status == 0)
    #expect(try home.run("get", "v", "name", "--unlock-key-file", key).text == "value")
    let byDescriptor = try Tool.run(
      ["get", "v", "name", "--home", home.path, "--unlock-key-fd", "3"], descriptors: [3: bytes])
    #expect(byDescriptor.text == "value")
    let other = try keyFile("other")
    #expect(try home.run("get", "v", "name", "--unlock-key-file", other).status == 77)
    try Tool.run(
      ["slots", "add", "v", "spare", "--new-slot-key-fd", "3", "--home", home.path]
        + ["--unlock-key-file", key], descriptors: [3: Array(0x20...0x3F)]
    ).expect(0)
    #expect(try home.run("get", "v", "name", "--unlock-key-file", other).text == "value")
  }

  @Test func `a key file of the wrong length or with open permissions ends with 77`() throws {
    let short = try keyFile("short", Array(1...31))
    let loose = try keyFile("loose", mode: 0o640)
    let before = try home.contents()
    for path in [short, loose, home.folder.path("absent")] {
      try home.run("get", "v", "name", "--unlock-key-file", path).expect(77)
      try byCode(home, "slots", "add", "v", "usb", "--new-slot-key-file", path).expect(77)
    }
    #expect(try home.contents() == before)
  }

  @Test func `slots list needs no password, and slots remove takes a name`() throws {
    let key = try keyFile("key")
    #expect(try byCode(home, "slots", "add", "v", "usb", "--new-slot-key-file", key).status == 0)
    #expect(
      try home.run("slots", "list", "v").text
        == "SLOT            ITERATIONS\npassword        300000\nrecovery:paper  -\nkeyfile:usb     -\n"
    )
    #expect(
      try home.run("slots", "list", "v", "--json").text
        == #"{"slots":[{"iterationCount":300000,"kind":"password","slot":"password"},"#
        + #"{"kind":"recoveryCode","name":"paper","slot":"recovery:paper"},"#
        + #"{"kind":"keyFile","name":"usb","slot":"keyfile:usb"}],"vault":"v"}"# + "\n")
    #expect(try byCode(home, "slots", "remove", "v", "card").status == 66)
    #expect(try byCode(home, "slots", "add", "v", "usb", "--recovery-code").status == 73)
    #expect(try byCode(home, "slots", "remove", "v", "keyfile:usb").status == 0)
    #expect(try byCode(home, "slots", "remove", "v", "password").status == 0)
    try byCode(home, "slots", "remove", "v", "paper").expect(78, says: "hint: ")
    // There is no terminal to ask at.
    try home.run("get", "v", "name").expect(77, says: "hint: give --recovery-code-file")
    #expect(try home.unlocked("get", "v", "name").status == 66)
    #expect(try byCode(home, "get", "v", "name").text == "value")
  }

  @Test func `slots add removes a recovery code that could not be printed`() throws {
    let child = try Child(
      ["slots", "add", "v", "lost", "--recovery-code", "--home", home.path]
        + ["--recovery-code-file", home.folder.path("code")],
      descriptors: [0: .closed, 1: .writing("/dev/full")])
    #expect(child.wait() == 74)
    #expect(try !home.run("slots", "list", "v").text.contains("lost"))
  }

  @Test func `slots add names the slot of a code that no one has seen, if it cannot remove it`()
    throws
  {
    // A full pipe, which is closed when the vault's file is gone.
    let path = home.folder.path("pipe")
    mkfifo(path, 0o600)
    let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    let filler = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    while write(filler, "x", 1) == 1 {}
    let errors = home.folder.path("errors")
    let child = try Child(
      ["slots", "add", "v", "lost", "--recovery-code", "--home", home.path]
        + ["--recovery-code-file", home.folder.path("code")],
      descriptors: [1: .writing(path), 2: .writing(errors)])
    try eventually("the slot is added") {
      try home.run("slots", "list", "v").text.contains("lost")
    }
    try FileManager.default.removeItem(atPath: home.vault("v"))
    close(filler)
    close(reader)
    #expect(child.wait() == 66)
    #expect(
      home.folder.contents(of: "errors")?.contains("run datavault slots remove v") == true)
  }

  @Test func `rotate keeps the given slots and drops the named ones`() throws {
    let key = try keyFile("key")
    #expect(try byCode(home, "slots", "add", "v", "usb", "--new-slot-key-file", key).status == 0)
    let before = try home.contents()
    let password = home.passwordFile
    let code = home.folder.path("code")
    try home.run(
      "rotate", "v", "--unlock-key-file", key, "--password-file", password
    ).expect(77, says: "recovery:paper")
    #expect(try home.run("rotate", "v", "--unlock-key-file", key).status == 77)
    try home.run(
      "rotate", "v", "--unlock-key-file", key, "--recovery-code-file", code,
      "--password-file", home.wrongFile
    ).expect(77)
    try home.run("rotate", "v", "--unlock-key-file", key, "--drop", "card", "--drop", "password")
      .expect(66)
    #expect(try home.run("rotate", "v", "--drop", "password").status == 77)
    #expect(try home.contents() == before)
    let rotated = try home.run(
      "rotate", "v", "--unlock-key-file", key, "--password-file", password, "--drop", "paper")
    #expect(rotated.status == 0)
    #expect(rotated.output.isEmpty)
    #expect(try home.unlocked("get", "v", "name").text == "value")
    #expect(try home.run("get", "v", "name", "--unlock-key-file", key).text == "value")
    #expect(try byCode(home, "get", "v", "name").status == 66)
  }

  @Test func `slots add and rotate refuse a vault with the publicly known password`() throws {
    let home = try TestHome.unsecured()
    let added = try home.run("slots", "add", "messaging", "paper", "--recovery-code").expect(78)
    #expect(added.output.isEmpty)
    try home.run("rotate", "messaging").expect(78, says: "hint: run datavault secure")
  }

  @Test func `a recovery code opens the queue before and after rotate`() throws {
    let home = try TestHome.secured()
    // A rotation needs the key of each slot that stays.
    try home.unlocked("slots", "remove", "messaging", "test").expect(0)
    let added = try home.unlocked("slots", "add", "messaging", "paper", "--recovery-code")
    try home.folder.file("code", added.output)
    #expect(
      try byCode(home, "queue", "receive", "c", "--no-ack", "--lease", "1ms").text == "first\n")
    try byCode(home, "rotate", "messaging", "--drop", "password").expect(0)
    #expect(try byCode(home, "queue", "receive", "c").text == "first\n")
    #expect(try byCode(home, "queue", "rekey").status == 0)
  }
}
