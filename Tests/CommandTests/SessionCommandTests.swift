import Foundation
import Glibc
import TestSupport
import Testing

@Suite(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
struct SessionCommandTests {
  let home: TestHome

  init() throws { home = try TestHome.secured() }

  private func unlock(_ arguments: String...) throws {
    let outcome = try home.unlocked(["unlock", "messaging"] + arguments, input: []).expect(0)
    #expect(outcome.output.isEmpty)
  }

  private func lock() { _ = try? home.run("lock", "messaging") }

  @Test func `an unlocked vault needs no password until it is locked`() throws {
    #expect(try home.run("queue", "receive", "c").status == 77)
    try unlock()
    defer { lock() }
    #expect(try home.run("queue", "receive", "c").text == "first\n")
    #expect(try home.run("set", "messaging", "token", input: "t0ken").status == 0)
    #expect(try home.run("get", "messaging", "token").text == "t0ken")
    #expect(try home.run("queue", "publish", "c", input: "second\n").status == 0)

    #expect(try home.run("lock", "messaging").status == 0)
    #expect(try home.run("get", "messaging", "token").status == 77)
    #expect(try home.run("queue", "receive", "c").status == 77)
    // Locking a locked vault succeeds.
    #expect(try home.run("lock", "messaging").status == 0)
  }

  @Test func `a session ends after its duration`() throws {
    try unlock("--for", "1s")
    defer { lock() }
    try eventually { try home.run("items", "messaging").status == 77 }
  }

  @Test func `a given password is used instead of the session`() throws {
    try unlock()
    defer { lock() }
    #expect(try home.run("items", "messaging", "--password-file", home.wrongFile).status == 77)
    // A session cannot extend itself.
    #expect(try home.run("unlock", "messaging", "--for", "7d").status == 77)
  }

  @Test func `no command opens an unsecured vault in the place of one with a session`() throws {
    try unlock()
    defer { lock() }
    let unsecured = try TestHome.unsecured()
    for (file, other) in [
      (home.database, unsecured.database), (home.vault("messaging"), unsecured.vault("messaging")),
    ] {
      unlink(file)
      rename(other, file)
    }
    for command in [["queue", "publish", "c"], ["queue", "stats"], ["items", "messaging"]] {
      try Tool.run(command + ["--home", home.path]).expect(78, says: "datavault lock messaging")
    }
    lock()
    try home.run("items", "messaging").expect(0, says: "not secured")
  }

  @Test func `no command creates a missing vault that a session opens`() throws {
    try unlock()
    defer { lock() }
    let vaults = home.path + "/vaults"
    let (database, away) = (home.database, home.folder.path("away"))
    // An unmounted file system leaves an empty directory.
    try FileManager.default.moveItem(atPath: home.path, toPath: away)
    try FileManager.default.createDirectory(atPath: home.path, withIntermediateDirectories: false)
    let unsecured = try TestHome.unsecured()
    for arguments in [
      ["queue", "publish", "c"], ["create", "messaging", "--new-password-file", home.passwordFile],
      ["secure", "--new-password-file", home.passwordFile],
      ["import", unsecured.vault("messaging")],
      ["import", away + "/vaults/messaging.vault"],
    ] {
      try home.run(arguments, input: "secret\n").expect(66, of: "\(arguments)", says: "mounted")
      #expect(!FileManager.default.fileExists(atPath: vaults))
      #expect(!FileManager.default.fileExists(atPath: database))
    }
    try FileManager.default.removeItem(atPath: home.path)
    try FileManager.default.moveItem(atPath: away, toPath: home.path)
    #expect(try home.run("queue", "publish", "c", input: "second\n").status == 0)
    #expect(try home.run("queue", "history", "c").text == "first\nsecond\n")
  }

  @Test func `unlock with a wrong password starts no session`() throws {
    try home.run("unlock", "messaging", "--password-file", home.wrongFile).expect(77)
    #expect(try home.run("items", "messaging").status == 77)
  }

  @Test(arguments: [
    ["unlock", "messaging", "--for", "0s"], ["unlock", "messaging", "--for", "999ms"],
    ["unlock", "messaging", "--for", "367d"], ["unlock", "messaging", "--for", "soon"],
    ["unlock"], ["lock"], ["lock", "messaging", "--all"],
  ])
  func `unlock and lock refuse invalid arguments with 64`(arguments: [String]) throws {
    let source = arguments.first == "unlock" ? ["--password-file", home.passwordFile] : []
    #expect(try home.run(arguments + source).status == 64)
  }

  @Test func `unlock and lock of a missing vault end with 66`() throws {
    #expect(try home.unlocked("unlock", "no").status == 66)
    #expect(try home.run("lock", "no").status == 66)
  }

  @Test func `unlock refuses a vault that is not secured`() throws {
    let home = try TestHome.unsecured()
    try home.run("unlock", "messaging").expect(78, says: "hint: run datavault secure")
  }

  /// Expects that a change ends the session of a vault, which then needs its password.
  private func expectEnd(by change: () throws -> Void) throws {
    try home.createVault()
    #expect(try home.unlocked("unlock", "v").status == 0)
    defer { _ = try? home.run("lock", "v") }
    try change()
    #expect(try !home.run("items", "v").expect(77).errors.contains("session"))
  }

  @Test func `the session of a deleted vault does not open a new vault of the same name`() throws {
    try expectEnd {
      try home.run("delete", "v").expect(0)
      try home.createVault()
    }
  }

  @Test func `rotate ends the session of the vault`() throws {
    try expectEnd { try home.unlocked("rotate", "v").expect(0) }
  }

  @Test func `status shows when the session ends`() throws {
    struct Report: Decodable {
      struct Session: Decodable {
        let until: Date
        let remainingSeconds: Int
      }
      let session: Session?
    }
    func report() throws -> Report {
      let decoder = JSONDecoder()
      decoder.dateDecodingStrategy = .iso8601
      return try decoder.decode(
        Report.self, from: Data(try home.run("status", "messaging", "--json").output))
    }
    #expect(try report().session == nil)
    #expect(try home.run("status", "messaging").text.contains("session    none\n"))
    try unlock("--for", "1h")
    defer { lock() }
    let session = try #require(try report().session)
    #expect((3500...3600).contains(session.remainingSeconds))
    #expect((3500...3601).contains(session.until.timeIntervalSinceNow))
    #expect(try home.run("status", "messaging").text.contains("session    until 20"))
    lock()
    #expect(try report().session == nil)
  }

  @Test func `a session is found from a session keyring without a link to the user's keyring`()
    throws
  {
    let source = ["--home", home.path, "--password-file", home.passwordFile]
    #expect(try Tool.run(["unlock", "messaging"] + source, through: Keyrings.fresh).status == 0)
    defer { lock() }
    let get = ["queue", "receive", "c", "--home", home.path]
    #expect(try Tool.run(get, through: Keyrings.fresh).text == "first\n")
    #expect(try Tool.run(get).status == 0)
  }

  @Test(arguments: [EPERM, ENOSYS, EACCES])
  func `commands work if the kernel refuses sessions, but unlock and lock fail`(
    number: Int32
  ) throws {
    let refused = KernelKeys.refused(with: number)
    let source = ["--home", home.path, "--password-file", home.passwordFile]
    let received = try Tool.run(["queue", "receive", "c"] + source, through: refused)
    #expect(received.text == "first\n", "\(received.errors)")
    #expect(received.errors.isEmpty)
    try Tool.run(["items", "messaging", "--home", home.path], through: refused)
      .expect(77, says: "needs a password")
    let place = ["--home", home.path]
    for arguments in [
      ["unlock", "messaging"] + source, ["lock", "messaging"] + place, ["lock", "--all"] + place,
    ] {
      try Tool.run(arguments, through: refused)
        .expect(69, says: "the kernel's keyring refuses sessions", "\nhint: ")
    }
  }

  @Test func `lock, lock --all and unlock name a process that does not answer`() throws {
    let silent = try SilentSocket(in: home)
    defer { silent.close() }
    try home.run("lock", "messaging").expect(75, says: "does not answer")
    // Without kernel keys: it would end the sessions of all tests.
    let refused = KernelKeys.refused(with: EPERM)
    try Tool.run(["lock", "--all", "--home", home.path], through: refused)
      .expect(75, says: "does not answer")
    let source = ["--home", home.path, "--password-file", home.passwordFile]
    try Tool.run(["unlock", "messaging"] + source, through: refused)
      .expect(69, says: "does not answer")
  }
}

/// The socket of a process that is stopped.
private struct SilentSocket {
  private let descriptor: Int32

  init(in home: TestHome) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    mkdir(home.path + "/run", 0o700)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = home.path + "/run/1-0.sock"
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    let result = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0 && listen(descriptor, 16) == 0)
  }

  func close() { _ = Glibc.close(descriptor) }
}
