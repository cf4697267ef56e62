import Foundation
import Glibc
import PrivateKeyring
import TestSupport
import Testing

/// `datavault doctor` on homes that cause each of its findings.
@Suite struct DoctorCommandTests {
  let home: TestHome

  init() throws { home = try TestHome.secured() }

  private struct Report: Decodable {
    struct Finding: Decodable {
      let kind: String
      let vault: String?
      let isWarning: Bool
      let message: String
      let fix: String
    }
    let findings: [Finding]
  }

  /// The findings, each as "kind vault".
  ///
  /// Findings that depend on this machine, or on the missing password, are omitted.
  func kinds(_ outcome: Program) throws -> [String] {
    let findings = try JSONDecoder().decode(Report.self, from: Data(outcome.output)).findings
    for finding in findings { #expect(!finding.message.isEmpty && !finding.fix.isEmpty) }
    let everywhere = ["sessionsUnavailable", "memoryNotLocked", "rollbackNotChecked"]
    return findings.filter { !everywhere.contains($0.kind) }
      .map { "\($0.kind) \($0.vault ?? "-")" }
  }

  /// Expects the exit code, the findings and a text of a report, by default of this home's.
  @discardableResult
  func expectFindings(
    _ findings: [String], status: Int32 = 0, says text: String = "{", in outcome: Program? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Program {
    let outcome = try outcome ?? home.run("doctor", "--json")
    #expect(try kinds(outcome) == findings, sourceLocation: sourceLocation)
    return outcome.expect(status, prints: text, sourceLocation: sourceLocation)
  }

  private func fixture(_ name: String) throws -> [UInt8] {
    let path = Repository.path("Fixtures/vaults/\(name)")
    return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  func put(_ bytes: [UInt8], as id: String, in home: TestHome) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: home.vault(id)))
    chmod(home.vault(id), 0o600)
  }

  @Test func `doctor reports nothing for a healthy home`() throws {
    #expect(try kinds(try home.run("doctor", "--json")) == [])
    let outcome = try home.run("doctor").expect(0)
    #expect(outcome.text.contains("note: cannot check whether the database was rolled back"))
    #expect(outcome.text.hasPrefix("no problems found\n") == !outcome.text.contains("warning: "))
    #expect(try kinds(try TestHome.fresh().run("doctor", "--json")) == [])
  }

  @Test func `doctor ends with 0 if it has only warnings, and they name the vault`() throws {
    let home = try TestHome.unsecured()
    let before = try home.contents()
    let old = try fixture("positive/password.vault")
    try put(old, as: "password", in: home)
    try put(old, as: "put-aside", in: home)
    rename(home.vault("put-aside"), home.vault("put-aside") + ".retired-1")
    let outcome = try home.run("doctor", "--json").expect(0)
    let expected = ["standardPassword messaging", "oldIterations password", "retiredVault -"]
    #expect(try kinds(outcome) == expected)
    let text = try home.run("doctor").text
    #expect(text.contains("warning: vault 'messaging' opens with the publicly known password"))
    #expect(text.contains("  fix: run `datavault secure`\n"))
    #expect(text.contains("put-aside.vault.retired-1"))
    // The command changed nothing.
    #expect(try home.contents().filter { before[$0.key] != nil } == before)
  }

  @Test func `doctor reports a vault that waits after wrong passwords`() throws {
    // As after many of them, so that the wait is longer than a slow machine needs.
    let record = #"{"version":1,"failures":20,"retryAt":9007199254740991,"openedAt":null}"# + "\n"
    try Data(record.utf8).write(to: URL(fileURLWithPath: home.path + "/vaults/messaging.retry"))
    chmod(home.path + "/vaults/messaging.retry", 0o600)
    try expectFindings(["tooManyAttempts messaging"])
  }

  @Test func `doctor ends with the exit code of the error that makes a vault unusable`() throws {
    try put(try fixture("negative/newer-version.vault"), as: "a", in: home)
    try expectFindings(["newerVersion a"], status: 65).expect(65, says: "hint: ")

    try put([1, 2, 3], as: "a", in: home)
    try expectFindings(["damaged a"], status: 65)

    unlink(home.vault("a"))
    chmod(home.vault("messaging"), 0o644)
    try expectFindings(["permissionsTooOpen messaging"], status: 77)
  }

  @Test(.enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)))
  func `doctor distinguishes no bus, no service, no collection and a locked collection`() throws {
    let home = try TestHome.fresh()
    let keyring = try PrivateKeyring()
    var seen: [String] = []
    func look(_ kind: String, _ status: Int32) throws {
      let outcome = try Tool.run(
        ["doctor", "--json", "--store", "secret-service", "--home", home.path],
        environment: keyring.environment)
      #expect(outcome.status == status)
      #expect(try kinds(outcome) == ["\(kind) -"])
      let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output))
      seen += report.findings.filter { $0.kind == kind }.map { "\($0.message) | \($0.fix)" }
    }
    try look("storeUnavailable", 69)  // no service
    try keyring.startWithoutCollection()
    try look("storeUnavailable", 69)
    keyring.stopKeyring()
    try keyring.startUnlocked()
    keyring.stopKeyring()
    try keyring.startLocked()
    try look("storeLocked", 77)
    keyring.stopKeyring()
    keyring.stopBus()
    try look("storeUnavailable", 69)  // no bus
    #expect(Set(seen).count == 4, "\(seen)")
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `doctor reports memory that cannot be locked, and other commands warn once`() throws {
    let (user, home) = (OtherUser(), try TestHome.secured())
    try user.take(home)
    let limited = ["prlimit", "--memlock=0:0"] + user.wrapper
    let outcome = try Tool.run(["doctor", "--json", "--home", home.path], through: limited)
      .expect(0, prints: #""kind":"memoryNotLocked""#)
    #expect(outcome.errors.isEmpty)
    // A vault command, an engine command and a failing command each warn once.
    for (arguments, file, status) in [
      (["items", "messaging"], "password", 0), (["queue", "stats"], "password", 0),
      (["items", "messaging"], "wrong", 77),
    ] as [([String], String, Int32)] {
      let outcome = try Tool.run(
        arguments + ["--home", home.path, "--password-file", home.folder.path(file)],
        through: limited)
      #expect(outcome.status == status)
      #expect(
        outcome.errors.components(separatedBy: "cannot be locked into memory").count == 2,
        "\(outcome.errors)")
    }
  }

  @Test(.enabled(if: SmallDisk.isAvailable, SmallDisk.skipReason))
  func `doctor reports a full disk, which prevents counting wrong attempts`() throws {
    let home = try TestHome.fresh()
    let disk = try SmallDisk(at: home.path, byteCount: 1 << 20)
    try home.createVault()
    #expect(try kinds(try home.run("doctor", "--json")) == [])
    _ = FileManager.default.createFile(
      atPath: home.path + "/filler", contents: Data(count: (1 << 20) - (64 << 10)))
    var rest = 0
    while FileManager.default.createFile(
      atPath: home.path + "/filler\(rest)", contents: Data(count: 4096)), rest < 64
    { rest += 1 }
    try expectFindings(
      ["attemptsNotRecorded v"], says: "free some space", in: home.run("doctor", "--json"))
    #expect(!disk.names.isEmpty)
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `doctor reports a read-only directory and a lock file of another user`() throws {
    let (user, home) = (OtherUser(), try TestHome.secured())
    try user.take(home)
    let directory = home.path + "/vaults"
    func names() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }
    let before = try names()
    #expect(try kinds(try user.run(home, "doctor", "--json")) == [])
    #expect(try names() == before, "the command left a file")
    func look(_ fix: String = "run as the owner of") throws {
      try expectFindings(
        ["attemptsNotRecorded messaging"], says: fix, in: user.run(home, "doctor", "--json"))
    }
    chmod(directory, 0o500)
    try look()
    chmod(directory, 0o700)
    #expect(try names() == before)
    // A probe file that a killed command left does not affect the next command.
    let leftover = directory + "/.messaging.retry.probe"
    #expect(FileManager.default.createFile(atPath: leftover, contents: nil))
    chmod(directory, 0o500)
    try look()
    chmod(directory, 0o700)
    #expect(try kinds(try user.run(home, "doctor", "--json")) == [])
    #expect(try names() == before, "the probe file is still there")
    let lock = directory + "/messaging.retry.lock"
    unlink(lock)
    #expect(FileManager.default.createFile(atPath: lock, contents: nil))
    chmod(lock, 0o600)
    try look("check its owner and remove it")
  }

  /// What can be wrong with a file, done by a shell in its directory, and how a command then ends.
  private static let wrongFiles: [(make: String, status: Int32)] = [
    ("rm -f F; mkdir F", 77), ("rm -f F; mkfifo F", 77), ("rm -f F; ln -s /dev/null F", 77),
    ("touch F; ln F other", 77),
    ("rm -f F; touch F; chown 0:0 F", 77), ("chmod 0 F", 74), ("chmod 400 F", 74),
  ]

  /// Runs a line of a shell as root, where `F` is a file; what it makes belongs to the user unless it says so.
  private func shell(_ line: String, _ file: String, in directory: String, _ user: OtherUser) throws
  {
    let script = line.replacingOccurrences(of: "F", with: "./\(file)")
    let owned = line.contains("chown") ? script : "\(script); chown -h \(user.id):\(user.id) *"
    #expect(try Program.run("/bin/sh", ["-ec", owned], in: directory).status == 0)
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason), arguments: wrongFiles)
  func `a lock file of a vault that cannot be used ends with the code that a change would have`(
    make: String, status: Int32
  ) throws {
    let (user, home) = (OtherUser(), try TestHome.secured())
    try user.take(home)
    try shell(make, "messaging.lock", in: home.path + "/vaults", user)
    let change = try user.run(
      home, "policy", "set", "messaging", "--digit", "--password-file",
      home.passwordFile)
    #expect(change.status == status, "\(change.errors)")
    let outcome = try user.run(home, "doctor", "--json").expect(status)
    #expect(
      try kinds(outcome) == [status == 77 ? "foreignFile messaging" : "writeFailed messaging"])
    #expect(outcome.text.contains("a wrong password of it is not counted"))
  }

  @Test(arguments: ["messaging.retry", ".messaging.retry.new"])
  func `a directory in the place of a record of attempts is reported`(name: String) throws {
    unlink(home.path + "/vaults/" + name)
    mkdir(home.path + "/vaults/" + name, 0o700)
    try expectFindings(["attemptsNotRecorded messaging"], says: "remove the directory")
  }

  @Test(
    .enabled(if: OtherUser.isAvailable, OtherUser.skipReason),
    arguments: [
      ("messaging.db", "chmod 400 F"), ("messaging.db", "chmod 500 ."),
      ("messaging.lock", "chmod 0 F"), ("messaging.lock", "rm F; ln -s /dev/null F"),
      ("messaging.lock", "rm F; mkdir F"), ("messaging.db-wal", "mkdir F"),
      ("messaging.db-wal", "touch F; chmod 600 F; chown 0:0 F"), ("messaging.db-shm", "mkdir F"),
      ("messaging.db-shm", "touch F; chmod 600 F; chown 0:0 F"),
      ("messaging.db-journal", "mkdir F"),
    ])
  func `files that keep messages from being used end it with the code that using them has`(
    file: String, make: String
  ) throws {
    let (user, home) = (OtherUser(), try TestHome.secured())
    try user.take(home)
    let source = ["--password-file", home.passwordFile]
    try shell(make, file, in: home.path, user)
    let stats = try user.run(home, "queue", "stats", source[0], source[1])
    #expect(stats.status != 0)
    for options in [[], source] {
      let outcome = try Tool.run(
        ["doctor", "--json", "--home", home.path] + options, through: user.wrapper + Keyrings.fresh)
      #expect(outcome.status == stats.status, "\(outcome.text)")
      #expect(outcome.text.contains(#""isWarning":false"#))
    }
  }

  @Test(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
  func `doctor omits attempts for a vault that opens with the publicly known password`() throws {
    let (user, home) = (OtherUser(), try TestHome.unsecured())
    try user.take(home)
    chmod(home.path + "/vaults", 0o500)
    #expect(try kinds(try user.run(home, "doctor", "--json")) == ["standardPassword messaging"])
  }

  @Test func `doctor reports a file size limit of 0, which prevents opening a vault`() throws {
    // With this limit the process cannot write its report to a file, only to a pipe.
    let output = Pipe()
    let child = try Child(
      ["doctor", "--json", "--home", home.path],
      descriptors: [1: .inherited(output.fileHandleForWriting.fileDescriptor)],
      through: ["prlimit", "--fsize=0"])
    try output.fileHandleForWriting.close()
    let bytes = [UInt8](output.fileHandleForReading.readDataToEndOfFile())
    let outcome = Program(status: child.wait(), output: bytes, errors: "")
    try expectFindings(["fileSizeLimit messaging"], status: 74, says: "ulimit -f", in: outcome)
  }

  @Test func `doctor reports a home and files that other users can write or own`() throws {
    func found(_ status: Int32 = 0) throws -> [String] {
      let outcome = try home.run("doctor", "--json").expect(status)
      let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output))
      let kinds = ["permissionsTooOpen", "foreignOwner"]
      return report.findings.filter { kinds.contains($0.kind) }.map { "\($0.message) | \($0.fix)" }
    }
    #expect(try found() == [])
    for mode in [0o777, 0o775, 0o1777] as [mode_t] {
      chmod(home.path, mode)
      #expect(
        try found() == [
          "other users can make, rename and remove files in \(home.path) | chmod go-w \(home.path)"
        ])
    }
    chmod(home.path, 0o755)
    #expect(try found() == [])
    let files = ["", "-wal", "-shm"].map { home.database + $0 } + [home.path + "/messaging.lock"]
    for path in files {
      let wasThere = FileManager.default.fileExists(atPath: path)
      if !wasThere { #expect(FileManager.default.createFile(atPath: path, contents: nil)) }
      chmod(path, 0o666)
      #expect(try found() == ["other users can read or write \(path) | chmod 600 \(path)"])
      chmod(path, 0o600)
      if geteuid() == 0 {
        chown(path, 65534, 65534)
        let message = "\(path) belongs to user 65534, not to user 0"
        // No lock is taken on another user's file.
        let status: Int32 = path.hasSuffix(".lock") ? 77 : 0
        #expect(try found(status).map { $0.hasPrefix(message) } == [true])
        chown(path, 0, 0)
      }
      if !wasThere { unlink(path) }
    }
    guard geteuid() == 0 else { return }
    chown(home.vault("messaging"), 65534, 65534)
    let message = "\(home.vault("messaging")) belongs to user 65534"
    #expect(try found().map { $0.hasPrefix(message) } == [true])
  }

  @Test func `doctor reports a kernel that refuses sessions`() throws {
    try Tool.run(
      ["doctor", "--json", "--home", home.path], through: KernelKeys.refused(with: EPERM)
    ).expect(0, prints: #""kind":"sessionsUnavailable""#)
  }
}
