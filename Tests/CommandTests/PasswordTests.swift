import Foundation
import TestSupport
import Testing

@Suite struct PasswordTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  @Test(arguments: [
    ["queue", "publish", "c"], ["queue", "receive", "c"], ["queue", "stats"],
    ["items", "messaging"], ["get", "messaging", "x"], ["set", "messaging", "x"],
    ["unset", "messaging", "x"], ["change-password", "messaging"],
  ])
  func `a secured vault without a source or a terminal ends with 77 and does not change`(
    arguments: [String]
  ) throws {
    let before = try home.contents()
    let outcome = try Tool.run(arguments + ["--home", home.path], input: Array("a message\n".utf8))
      .expect(77, says: "hint: give --password-file")
    #expect(outcome.output.isEmpty)
    #expect(try home.contents() == before)
  }

  @Test(arguments: [
    ["queue", "publish", "c"], ["queue", "receive", "c"], ["items", "messaging"],
  ])
  func `a wrong password ends with 77 and changes nothing`(arguments: [String]) throws {
    let before = try home.contents()
    let outcome = try Tool.run(
      arguments + ["--home", home.path, "--password-file", home.wrongFile],
      input: Array("a message\n".utf8))
    #expect(outcome.status == 77)
    #expect(try home.contents() == before)
  }

  @Test func `a password file that the disk fails to read ends with 74`() throws {
    // A terminal that is still locked: open(2) fails with EIO.
    let side = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    defer { close(side) }
    var number: Int32 = 0
    try #require(side >= 0 && ioctl(side, UInt(0x8004_5430), &number) == 0)
    let outcome = try home.run("items", "messaging", "--password-file", "/dev/pts/\(number)")
    #expect(outcome.status == 74)
    #expect(!outcome.errors.contains("check the path"), "\(outcome.errors)")
  }

  @Test func `a process with few open files makes no attempt, or one that is counted`() throws {
    let original = try TestHome.secured()
    var isRefused = false
    // Without the descriptors that other tests leave to a process at this moment: both have the same number.
    let closing =
      #"for path in /proc/self/fd/*; do fd=${path##*/}; ((fd < 3)) || exec {fd}>&-; done; exec "$@""#
    // With fewer, Swift's runtime ends the process.
    for limit in Array(7...24) + [64] {
      let home = try TestHome.fresh()
      try FileManager.default.copyItem(atPath: original.path, toPath: home.path)
      func names(_ password: String) throws -> Program {
        try Tool.run(
          ["items", "messaging", "--home", home.path]
            + ["--password-file", home.folder.path(password)],
          through: ["bash", "-c", closing, "bash", "prlimit", "--nofile=\(limit):\(limit)"])
      }
      let wrong = try names("wrong")
      let isCounted = try home.run("status", "messaging", "--json").text
        .contains(#""failedAttempts":1,"#)
      #expect(isCounted == (wrong.status == 77), "\(limit): \(wrong.status) \(wrong.errors)")
      let right = try names("password")
      #expect((right.status == 0) == isCounted, "\(limit): \(right.errors)")
      if right.status == 74, right.errors.contains("ulimit -n") { isRefused = true }
      if limit == 64 { #expect(isCounted && right.status == 0) }
    }
    #expect(isRefused)
  }

  @Test func `a process with a file size limit of 0 makes no uncounted attempt`() throws {
    let before = try home.contents()
    for password in ["wrong", "password"] {
      let outcome = try Tool.run(
        ["items", "messaging", "--home", home.path, "--password-file", home.folder.path(password)],
        through: ["prlimit", "--fsize=0"])
      #expect(outcome.status == 74)
      // Standard error is a file here, so the limit prevents writing to it too.
      #expect(outcome.output.isEmpty)
    }
    #expect(try home.contents() == before)
  }

  @Test func `a named source is used even if the standard password opens the vault`() throws {
    let home = try TestHome.unsecured()
    let outcome = try home.run("queue", "receive", "c", "--password-file", home.wrongFile)
    #expect(outcome.status == 77)
    #expect(outcome.output.isEmpty)
  }

  @Test func `no command sets the publicly known password and salt`() throws {
    let fresh = try TestHome.fresh()
    let given = try ["password", "salt"].flatMap {
      // HMAC pads the password with zero bytes, so that this one is the same for PBKDF2.
      let end = $0 == "password" ? "\0\0" : ""
      return [
        "--new-\($0)-file",
        try fresh.folder.file("new-" + $0, Array("datavault-standard-\($0)\(end)".utf8)),
      ]
    }
    let commands = [
      (fresh, ["secure"]), (fresh, ["create", "v"]),
      (home, ["change-password", "messaging", "--password-file", home.passwordFile]),
    ]
    for (home, command) in commands {
      for given in [given, Array(given.prefix(2))] {
        try Tool.run(command + given + ["--home", home.path]).expect(78, says: "publicly known")
      }
    }
    #expect(try fresh.run("list").text.isEmpty)
    #expect(try home.unlocked("items", "messaging").status == 0)
  }

  @Test func `an unsecured vault opens with the standard password and a warning`() throws {
    let home = try TestHome.unsecured()
    let outcome = try home.run("queue", "receive", "c").expect(0)
    #expect(outcome.text == "first\n")
    #expect(outcome.errors.contains("warning"))
    try home.run("items", "messaging").expect(0, says: "warning")
  }

  @Test func `a secured vault gives no warning`() throws {
    let outcome = try TestHome.secured().queue("receive", "c").expect(0)
    #expect(outcome.text == "first\n")
    #expect(outcome.errors.isEmpty)
  }

  @Test(arguments: [("", Int32(0)), ("\n", 0), ("\n\n", 77)])
  func `a password is read from a descriptor, and one final newline is removed`(
    end: String, status: Int32
  ) throws {
    try Tool.run(
      ["items", "messaging", "--password-fd", "3", "--home", home.path],
      descriptors: [3: Array((TestHome.password + end).utf8)]
    ).expect(status)
  }

  @Test(arguments: [(65_536, "\n", Int32(0)), (65_536, "\n\n", 65), (65_537, "", 65)])
  func `a password has at most 64 KiB without its final newline`(
    byteCount: Int, end: String, status: Int32
  ) throws {
    let home = try TestHome.fresh()
    let file = try home.folder.file(
      "long", Array((String(repeating: "p", count: byteCount) + end).utf8))
    let made = try home.run("create", "v", "--new-password-file", file).expect(status)
    #expect(made.errors.contains("has more than 65536 bytes") == (status != 0))
  }

  @Test(arguments: [
    ("set messaging item --password-file /dev/stdin", ""),
    ("set messaging item --password-file /dev/fd/0", ""),
    ("set messaging item --password-fd 3", "3<&0"),
    ("queue publish c --password-file /dev/stdin", ""),
    ("items messaging --password-file /dev/stdin --salt-file /dev/stdin", ""),
    ("items messaging --password-fd 3 --salt-fd 4", "3<&0 4<&0"),
    ("create v --new-password-file /dev/stdin --new-salt-file /dev/fd/0", ""),
  ])
  func `a pipe that carries data or a secret carries no other secret`(
    line: String, redirections: String
  ) throws {
    try Tool.run(
      line.split(separator: " ").map(String.init) + ["--home", home.path],
      input: Array(TestHome.password.utf8),
      through: ["/bin/sh", "-c", #"cat | "$@" \#(redirections)"#, "sh"]
    ).expect(64, says: "secret")
    #expect(try home.unlocked("items", "messaging").text.isEmpty)
  }

  @Test func `an empty new salt is refused`() throws {
    let home = try TestHome.fresh()
    try home.run(
      "create", "v", "--new-password-file", home.passwordFile, "--new-salt-file",
      try home.folder.file("salt", [])
    ).expect(65, says: "the new salt of vault 'v' is empty")
    #expect(!FileManager.default.fileExists(atPath: home.vault("v")))
  }

  @Test func `a password is read from a systemd credential`() throws {
    let arguments = ["items", "messaging", "--credential", "password"]
    let found = try Tool.run(
      arguments + ["--home", home.path],
      environment: ["CREDENTIALS_DIRECTORY": home.folder.url.path])
    #expect(found.status == 0)
    try Tool.run(arguments + ["--home", home.path]).expect(77, says: "CREDENTIALS_DIRECTORY")
  }

  @Test(
    arguments: ["password", "salt", "new password", "recovery code"], [0o644, 0o640, 0o606, 0o620])
  func `a secret in a file that other users can read or write is refused`(
    what: String, mode: Int
  ) throws {
    let file = try home.folder.file("loose", Array(TestHome.password.utf8))
    chmod(file, mode_t(mode))
    let password = ["--password-file", home.passwordFile]
    let arguments: [String: [String]] = [
      "password": ["items", "messaging", "--password-file", file],
      "salt": ["items", "messaging", "--salt-file", file] + password,
      "new password": ["change-password", "messaging", "--new-password-file", file] + password,
      "recovery code": ["items", "messaging", "--recovery-code-file", file],
    ]
    let before = try home.contents()
    try Tool.run(arguments[what, default: []] + ["--home", home.path])
      .expect(77, says: "\(file): other users can read or write it", "hint: chmod 600 \(file)")
    #expect(try home.contents() == before)
  }

  @Test func `secrets from descriptors, pipes and systemd credentials are accepted`() throws {
    let file = home.passwordFile
    chmod(file, 0o644)
    let names = ["items", "messaging", "--home", home.path]
    for path in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
      let child = try Child(names + ["--password-file", path], descriptors: [0: .reading(file)])
      #expect(child.wait() == 0, "\(path)")
    }
    let substituted = try Tool.run(
      names,
      through: ["bash", "-c", #"exec "$@" --password-file <(cat "$0")"#, file])
    #expect(substituted.status == 0, "\(substituted.errors)")
    // systemd grants access by an access control list. The group's mode bits are its mask.
    let link = home.folder.path("link")
    symlink(home.folder.url.path, link)
    let environment = ["CREDENTIALS_DIRECTORY": link]
    for (mode, status) in [(0o400, 0), (0o440, 0), (0o444, 77)] as [(mode_t, Int32)] {
      chmod(file, mode)
      for source in [["--credential", "password"], ["--password-file", file]] {
        let outcome = try Tool.run(names + source, environment: environment)
        #expect(outcome.status == status, "\(mode) \(source)")
      }
    }
  }

  @Test func `a credential name that is a path is refused`() throws {
    let outcome = try home.run(
      "items", "messaging", "--credential", "../password",
      environment: ["CREDENTIALS_DIRECTORY": home.folder.url.path])
    #expect(outcome.status == 64)
  }

  @Test func `an empty password is no attempt and ends with 77`() throws {
    let empty = try home.folder.file("empty", Array("\n".utf8))
    let before = try home.contents()
    for _ in 0..<4 {
      try home.run("items", "messaging", "--password-file", empty).expect(77, says: "is empty")
    }
    #expect(try home.contents() == before)
  }

  @Test func `a missing password file ends with 77`() throws {
    try TestHome.secured().run("items", "messaging", "--password-file", "/nowhere/x").expect(77)
  }

  @Test func `a vault created with a salt opens only with that salt`() throws {
    let home = try TestHome.fresh()
    let salt = try home.folder.file("salt", Array("some salt".utf8))
    let created = try home.run(
      "create", "v", "--new-password-file", home.passwordFile, "--new-salt-file", salt)
    #expect(created.status == 0)
    #expect(try home.unlocked("items", "v").status == 77)
    #expect(try home.unlocked("items", "v", "--salt-file", salt).status == 0)
    #expect(try home.unlocked("items", "v", "--salt-file", home.wrongFile).status == 77)
  }

  @Test func `an empty new password is refused`() throws {
    let home = try TestHome.fresh()
    let empty = try home.folder.file("empty", Array("\n".utf8))
    try home.run("create", "v", "--new-password-file", empty).expect(65)
    #expect(try home.contents().isEmpty)
  }
}
