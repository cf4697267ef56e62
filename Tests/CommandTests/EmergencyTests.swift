import Foundation
import Glibc
import PrivateKeyring
import TestSupport
import Testing

/// Makes each emergency of `docs/how-to/emergencies.md`, and types the commands of its section at a terminal.
@Suite struct EmergencyTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  @Test func `a forgotten password is replaced with a recovery code`() throws {
    let added = try home.unlocked("slots", "add", "messaging", "paper", "--recovery-code")
    let night = try follow(
      "The password is forgotten",
      answers: [
        "Recovery code of vault messaging: ": added.text.trimmingCharacters(in: .newlines),
        "New password of vault messaging: ": "a new password", "The same again: ": "a new password",
        "Password of vault messaging: ": "a new password",
      ])
    #expect(night.statuses == [0, 0], "\(night.seen)")
    #expect(
      try home.run("queue", "receive", "c", "--password-file", home.passwordFile).status == 77)
  }

  @Test func `a lost vault is replaced by that of a backup, and no message is missing`() throws {
    let backup = home.folder.path("backup")
    #expect(try home.unlocked("backup", backup).status == 0)
    #expect(try home.queue("publish", "c", input: "second\n").status == 0)
    try FileManager.default.removeItem(atPath: home.vault("messaging"))
    let night = try follow("The vault is lost", words: ["BACKUP": backup])
    #expect(night.statuses == [0, 0, 0], "\(night.seen)")
    #expect(try home.queue("receive", "c").text == "first\nsecond\n")
  }

  @Test func `a damaged database keeps the messages that can be read`() throws {
    let lines = (1...2000).map { "message \($0), with enough text to fill some pages\n" }
    #expect(try home.queue("publish", "d", input: lines.joined()).status == 0)
    let file = try FileHandle(forUpdating: URL(filePath: home.database))
    try file.seek(toOffset: 30 * 4096)
    try file.write(contentsOf: Data(repeating: 7, count: 8 * 4096))
    try file.close()
    let night = try follow(
      "The database is damaged", words: ["COPY": home.folder.path("copy")])
    #expect(night.statuses == [0, 65, 65, 0], "\(night.seen)")
    let left = try home.queue("receive", "d", "--max", "5000").text
    #expect(left.split(separator: "\n").count > 1000)
    #expect(FileManager.default.fileExists(atPath: home.folder.path("copy/messaging.db")))
  }

  @Test(.enabled(if: SmallDisk.isAvailable, SmallDisk.skipReason))
  func `a disk that the queue has filled is emptied`() throws {
    let aside = home.folder.path("aside")
    try FileManager.default.moveItem(atPath: home.path, toPath: aside)
    let disk = try SmallDisk(at: home.path, byteCount: 50 << 20)
    _ = try Program.run("/bin/cp", ["-a", aside + "/.", home.path])
    let line = String(repeating: "x", count: 60_000) + "\n"
    func flood(_ count: Int) throws -> Program {
      try home.queue(
        "publish", "flood", input: String(repeating: line, count: count))
    }
    #expect(try flood(200).status == 0)
    // The stop makes the reserve, because the database is as large as it.
    #expect(FileManager.default.fileExists(atPath: home.database + "-reserve"))
    #expect(try flood(1000).status == 74)
    let night = try follow("The disk is full", words: ["CHANNEL": "flood"])
    #expect(night.statuses == [0, 0, 0, 0, 0], "\(night.seen)")
    #expect(try home.queue("publish", "c", input: "second\n").status == 0)
    #expect(try home.queue("receive", "c").text == "first\nsecond\n")
    withExtendedLifetime(disk) {}
  }

  @Test func `a lost machine is replaced from a backup`() throws {
    let backup = home.folder.path("backup")
    #expect(try home.unlocked("backup", backup).status == 0)
    try FileManager.default.removeItem(atPath: home.path)
    let night = try follow("The machine is lost", words: ["BACKUP": backup])
    #expect(night.statuses == [0, 0, 0], "\(night.seen)")
    #expect(try home.queue("receive", "c").text == "first\n")
  }

  @Test(.enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)))
  func `a locked keyring is unlocked without a desktop`() throws {
    let keyring = try PrivateKeyring()
    try keyring.startUnlocked()
    var environment = keyring.environment
    environment["GNOME_KEYRING_CONTROL"] = keyring.environment["XDG_RUNTIME_DIR"]
    let made = try home.run(
      "create", "v", "--new-password-file", home.passwordFile, "--store", "secret-service",
      environment: environment)
    #expect(made.status == 0, "\(made.errors)")
    keyring.stopKeyring()
    try keyring.startLocked()
    let night = try follow(
      "The keyring is locked",
      answers: ["Password of the keyring: ": PrivateKeyring.password], environment: environment)
    #expect(night.statuses == [0, 0], "\(night.seen)")
    #expect(night.seen.contains("v"), "\(night.seen)")
  }

  @Test func `a message that fails again and again is put aside`() throws {
    #expect(try home.queue("publish", "c", input: "second\n").status == 0)
    let token = try home.lease()
    #expect(try home.queue("reject", token, "--reason", "no such book").status == 0)
    let messages = try home.queue("history", "c", "--ndjson").objects
    let numbers = try messages.map { try #require($0["timetoken"] as? String) }
    try #require(numbers.count == 2)
    let night = try follow(
      "One message fails again and again",
      words: [
        "OTHER-TIMETOKEN": numbers[1], "TIMETOKEN": numbers[0], "CHANNEL": "c",
      ])
    #expect(night.statuses == Array(repeating: 0, count: 7), "\(night.seen)")
    #expect(night.seen.contains("no such book"))
    #expect(try home.queue("history", "c").text == "")
    #expect(try home.queue("receive", "c-failed").text == "first\n")
  }

  @Test(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
  func `a service that waits is unlocked`() throws {
    let service = Process()
    service.executableURL = URL(filePath: Program.built("SpoolDaemon"))
    service.arguments = [
      "--home", home.path, "--socket", home.folder.path("socket"), "--", "/bin/true",
    ]
    service.standardError = FileHandle.nullDevice
    try service.run()
    defer {
      service.terminate()
      service.waitUntilExit()
      _ = try? home.run("lock", "messaging")
    }
    try eventually { try home.run("status", "messaging").text.contains("waiting") }
    let night = try follow("A service waits for its unlock")
    #expect(night.statuses == [0, 0, 0], "\(night.seen)")
    try eventually { try home.run("status", "messaging").text.contains("serving") }
  }

  /// The console lines of a section, as they are on the page.
  private static func commands(of section: String) throws -> [String] {
    let page = try String(
      contentsOfFile: Repository.path("docs/how-to/emergencies.md"), encoding: .utf8)
    let text = try #require(page.components(separatedBy: "\n## \(section)\n").dropFirst().first)
    let lines = text.components(separatedBy: "\n## ")[0].split(separator: "\n")
    return lines.map { $0.drop { $0 == " " } }.filter { $0.hasPrefix("$ ") }
      .map { String($0.dropFirst(2)) }
  }

  /// Follows a section at a terminal, and answers what its commands ask.
  ///
  /// - Parameter words: what replaces the words in capitals.
  /// - Returns: the exit codes of the commands, and what the terminal shows.
  private func follow(
    _ section: String, words: KeyValuePairs<String, String> = [:],
    answers: [String: String] = [:], environment: [String: String] = [:]
  ) throws -> (statuses: [Int], seen: String) {
    let answers = answers.merging(
      ["Password of vault messaging: ": TestHome.password, "[y/N] ": "y"]
    ) { own, _ in own }
    var script = ""
    for var command in try Self.commands(of: section) {
      for (word, text) in words { command = command.replacing(word, with: text) }
      script += command + "\necho $? >>\(home.folder.path("statuses"))\n"
    }
    try home.folder.file("script", Array(script.utf8))

    let user = try TerminalUser()
    let terminal = Child.Descriptor.terminal(user.terminal)
    let folder = URL(filePath: Program.datavault).deletingLastPathComponent().path
    let own = ["DATAVAULT_HOME": home.path, "PATH": "\(folder):/usr/bin:/bin"]
    let shell = try Child(
      [], environment: environment.merging(own) { $1 },
      descriptors: [0: terminal, 1: terminal, 2: terminal],
      through: ["/bin/bash", home.folder.path("script")])
    var answered = 0
    try eventually(user.seen) {
      user.readOutput(milliseconds: 200)
      let tail = String(user.seen.dropFirst(answered))
      if let answer = answers.first(where: { tail.hasSuffix($0.key) }) {
        answered = user.seen.count
        user.press(answer.value + "\n")
      }
      return shell.hasEnded
    }
    user.readOutput()
    #expect(shell.wait() == 0, "\(user.seen)")
    let statuses = home.folder.contents(of: "statuses") ?? ""
    return (statuses.split(separator: "\n").compactMap { Int($0) }, user.seen)
  }
}
