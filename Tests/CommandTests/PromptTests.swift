import Foundation
import Glibc
import TestSupport
import Testing

/// What a user types at the terminal when a command asks for a secret.
@Suite struct PromptTests {
  private let bench: TerminalFixture

  init() throws { bench = try TerminalFixture() }

  @Test func `the terminal asks for the password and does not show it`() throws {
    let (user, child) = try bench.start(["queue", "receive", "c"])
    try user.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    user.readOutput()
    #expect(try bench.files.bytes("output") == Array("first\n".utf8))
    #expect(!user.seen.contains(TestHome.password))
  }

  @Test func `a wrong password at the terminal ends with 77`() throws {
    let (user, child) = try bench.start(["items", "messaging"])
    for _ in 0..<3 { try user.answer("Password of vault messaging: ", with: "wrong") }
    #expect(child.wait() == 77)
  }

  @Test func `a user who has mistyped the password can try again`() throws {
    let (user, child) = try bench.start(["items", "messaging"])
    try user.answer("Password of vault messaging: ", with: "wrong")
    try user.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(bench.errors.contains("try again"))
  }

  @Test func `the terminal asks for a new password twice, and both must match`() throws {
    let home = try TestHome.fresh()
    for (again, status) in [("different", 65), (TestHome.password, 0)] as [(String, Int32)] {
      let (user, child) = try bench.start(["create", "v"], in: home)
      try user.answer("New password of vault v: ", with: TestHome.password)
      try user.answer("The same again: ", with: again)
      #expect(child.wait() == status)
    }
    #expect(try home.unlocked("items", "v").status == 0)
  }

  @Test func `a password that the terminal can have cut off is refused`() throws {
    let home = try TestHome.fresh()
    for (length, status) in [(4095, 65), (4096, 65), (10_000, 65), (4000, 0)] as [(Int, Int32)] {
      let (user, child) = try bench.start(["create", "v"], in: home)
      let password = String(repeating: "p", count: length)
      try user.answer("New password of vault v: ", with: password)
      if status == 0 { try user.answer("The same again: ", with: password) }
      #expect(child.wait() == status, "\(length) bytes")
      #expect(bench.errors.contains("--new-password-file") == (status != 0), "\(bench.errors)")
      #expect(FileManager.default.fileExists(atPath: home.vault("v")) == (status == 0))
    }
  }

  @Test func `a terminal that closes during the question is reported`() throws {
    let (user, child) = try bench.start(["items", "messaging"])
    try user.waitFor("Password of vault messaging: ")
    user.press("\u{4}")  // Control-D: the end of the input
    #expect(child.wait() == 77)
    #expect(
      bench.errors.contains("the terminal closed before anything was entered"), "\(bench.errors)")
  }

  @Test func `the terminal asks for a recovery code and does not show it`() throws {
    let home = try TestHome.fresh()
    try home.createVault()
    let added = try home.unlocked("slots", "add", "v", "paper", "--recovery-code")
    let code = added.text.trimmingCharacters(in: .newlines)
    #expect(code.count == 44)
    func open(_ arguments: [String]) throws -> (status: Int32, seen: String) {
      let (user, child) = try bench.start(arguments, in: home)
      try user.answer("Recovery code of vault v: ", with: code.lowercased())
      let status = child.wait()
      user.readOutput()
      return (status, user.seen)
    }
    let outcome = try open(["items", "v", "--recovery-code-prompt"])
    #expect(outcome.status == 0)
    #expect(!outcome.seen.contains(code.lowercased().prefix(20)))
    #expect(
      try open(["rotate", "v", "--recovery-code-prompt", "--drop", "password", "--yes"]).status == 0
    )
    // A vault without a password asks for the recovery code by default.
    #expect(try open(["items", "v"]).status == 0)
    try home.run("items", "v").expect(77, says: "hint: give --recovery-code-file")
    try home.run("items", "v", "--recovery-code-prompt", "--unlock-key-file", "x").expect(64)
  }

  @Test func `the terminal asks for a salt with --salt-prompt, and for a new salt twice`() throws {
    let home = try TestHome.fresh()
    var (user, child) = try bench.start(["create", "v", "--new-salt-prompt"], in: home)
    try user.answer("New password of vault v: ", with: TestHome.password)
    try user.answer("The same again: ", with: TestHome.password)
    try user.answer("New salt of vault v: ", with: "some salt")
    try user.answer("The same again: ", with: "some salt")
    #expect(child.wait() == 0)
    for (salt, status) in [("some salt", 0), ("another", 77)] as [(String, Int32)] {
      (user, child) = try bench.start(["items", "v", "--salt-prompt"], in: home)
      for _ in 0..<(status == 0 ? 1 : 3) {
        try user.answer("Password of vault v: ", with: TestHome.password)
        try user.answer("Salt of vault v: ", with: salt)
      }
      #expect(child.wait() == status)
    }
  }

  @Test
  func
    `a wrong password beside a salt from a pipe ends the command, because the pipe is empty then`()
    throws
  {
    let home = try TestHome.fresh()
    let salt = try home.folder.file("salt", Array("some salt".utf8))
    try home.run("create", "v", "--new-password-file", home.passwordFile, "--new-salt-file", salt)
      .expect(0)
    for (password, status) in [("wrong", 77), (TestHome.password, 0)] as [(String, Int32)] {
      var ends: [Int32] = [-1, -1]
      try #require(pipe(&ends) == 0)
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      _ = write(ends[1], "some salt", 9)
      close(ends[1])
      let user = try TerminalUser()
      let child = try bench.start(
        ["items", "v", "--salt-fd", "9"], in: home, at: user, descriptors: [9: .inherited(ends[0])])
      close(ends[0])
      try user.answer("Password of vault v: ", with: password)
      #expect(child.wait() == status, "\(bench.errors)")
      user.readOutput()
      #expect(user.seen.components(separatedBy: "Password of vault v: ").count == 2)
      #expect(!bench.errors.contains("try again") && !bench.errors.contains("is empty"))
    }
  }
}
