import Foundation
import Glibc
import TestSupport
import Testing

/// What commands show at a terminal while they work.
@Suite struct ProgressTests {
  private let home: TestHome
  private let fixture: ExchangeFixture

  init() throws {
    home = try TestHome.secured()
    fixture = try ExchangeFixture(rowCount: 10)
  }

  /// Runs a command with standard output and error at a terminal, and returns what that shows.
  ///
  /// - Parameter output: a file for standard output.
  private func shown(
    _ arguments: [String], type: String = "xterm", noColor: Bool = false, input: String? = nil,
    output: String? = nil
  ) throws -> (status: Int32, text: String) {
    let user = try TerminalUser()
    // Kept open, because a terminal drops its output when its last user closes it.
    let holder = open(user.terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
    defer { close(holder) }
    let child = try Child(
      arguments, environment: ["TERM": type, "NO_COLOR": noColor ? "1" : ""],
      descriptors: [
        0: .reading(input ?? "/dev/null"),
        1: output.map { .writing($0) } ?? .terminal(user.terminal), 2: .terminal(user.terminal),
      ])
    // Read while it runs: a terminal holds only a few thousand bytes.
    try eventually(user.seen) {
      user.readOutput(milliseconds: 20)
      return child.hasEnded
    }
    for _ in 0..<50 { user.readOutput() }
    return (child.wait(), user.seen)
  }

  private var access: [String] { ["--home", home.path, "--password-file", home.passwordFile] }

  @Test(arguments: [
    ("secure", "re-encrypting"), ("queue rekey", "re-encrypting"), ("queue verify", "verifying"),
    ("queue export $folder/x", "exporting"),
    ("queue import $messages", "importing"), ("queue purge c", "deleting"),
    ("backup $folder/b", "backing up"), ("verify-backup $backup", "verifying"),
    ("restore $backup $folder/r", "restoring"),
    ("database verify $sealed --key-file $key", "verifying"),
    ("database export $sealed $folder/p --format plain --key-file $key", "exporting"),
    ("database import $plain $folder/i --format plain --new-key-file $key", "importing"),
    ("encrypt messaging", "encrypting"), ("queue export", "exporting"),
  ])
  func `long work shows its progress, and --quiet shows none`(command: String, work: String) throws
  {
    let folder = home.folder
    if command.contains("$backup") { try home.unlocked("backup", folder.path("backup")).expect(0) }
    if command.contains("$messages") {
      let other = try TestHome.fresh()
      try other.run("queue", "publish", "d", input: "elsewhere\n").expect(0)
      try other.run("queue", "export", folder.path("messages")).expect(0)
    }
    for isQuiet in [true, false] {
      let home = try command == "secure" ? TestHome.unsecured() : TestHome.secured()
      let paths = [
        "$folder/": folder.path(isQuiet ? "quiet-" : "loud-"), "$backup": folder.path("backup"),
        "$messages": folder.path("messages"), "$sealed": fixture.sealed,
        "$plain": fixture.folder.path("plain"), "$key": fixture.key,
      ]
      var arguments: [String] = command.split(separator: " ").map { word in
        paths.reduce(String(word)) { $0.replacing($1.key, with: $1.value) }
      }
      let places: [String: [String]] = [
        "secure": ["--home", home.path, "--new-password-file", home.passwordFile],
        "database": [], "verify-backup": ["--password-file", home.passwordFile],
        "restore": ["--password-file", home.passwordFile],
      ]
      arguments +=
        places[arguments[0]] ?? ["--home", home.path, "--password-file", home.passwordFile]
      if isQuiet { arguments.append("--quiet") }
      let isStream = ["encrypt messaging", "queue export"].contains(command)
      let outcome = try shown(
        arguments, input: fixture.key, output: isStream ? folder.path("output") : nil)
      #expect(outcome.status == 0, "\(outcome.text)")
      let found = outcome.text.contains("\r\(work): ")
      #expect(found == !isQuiet, "\(outcome.text.debugDescription)")
      if isQuiet { #expect(!outcome.text.contains("\u{1B}")) }
    }
  }

  /// The escape sequences of a text, without repetitions.
  private func sequences(_ text: String) -> Set<String> {
    Set(text.matches(of: /\u{1B}(\[[0-9;]*[A-Za-z]|.)/).map { String($0.output.1) })
  }

  @Test func `a command prints no color, whatever NO_COLOR is, and nothing at a dumb terminal`()
    throws
  {
    for noColor in [false, true] {
      let outcome = try shown(["queue", "verify"] + access, noColor: noColor)
      #expect(sequences(outcome.text) == ["[K"])
    }
    for type in ["dumb", ""] {
      let outcome = try shown(["queue", "verify"] + access, type: type)
      #expect(outcome.status == 0)
      #expect(!outcome.text.contains("\u{1B}") && !outcome.text.contains("verifying:"))
    }
  }

  @Test(arguments: [("xterm", ["[H", "[J"]), ("dumb", [])] as [(String, Set<String>)])
  func `queue stats --watch erases the screen, or prints one table below the other`(
    type: String, expected: Set<String>
  ) throws {
    let user = try TerminalUser()
    let child = try Child(
      ["queue", "stats", "--watch", "--interval", "100ms"] + access,
      environment: ["TERM": type, "NO_COLOR": "1"], descriptors: [1: .terminal(user.terminal)])
    try eventually(user.seen) {
      user.readOutput(milliseconds: 20)
      return user.seen.components(separatedBy: "CHANNEL").count > 3
    }
    kill(child.id, SIGINT)
    _ = child.wait()
    #expect(sequences(user.seen) == expected)
  }

  @Test func `sizes and times are for people at a terminal, and raw elsewhere`() throws {
    try home.unlocked("set", "messaging", "big", input: String(repeating: "x", count: 9000))
      .expect(0)
    try home.queue("retention", "set", "c", "--age", "7d", "--bytes", "3145728")
      .expect(0)
    try home.unlocked("policy", "set", "messaging", "--lock-timeout", "2h").expect(0)
    for (command, people, raw) in [
      (["verify", "messaging"], " KiB, as they were written", " bytes, as they were written"),
      (["queue", "retention", "c"], "7d 0h", "604800.0 s"),
      (["queue", "retention", "c"], "3.00 MiB", "3145728"),
      (["policy", "show", "messaging"], "2h 0m", "7200 s"),
    ] {
      #expect(try shown(command + access).text.contains(people), "\(command)")
      #expect(try home.unlocked(command, input: []).text.contains(raw), "\(command)")
    }
  }
}
