import Foundation
import Glibc
import TestSupport
import Testing

/// A pseudo-terminal and a user who types when asked.
final class TerminalUser {
  let side: Int32
  let terminal: String
  private(set) var seen = ""

  init() throws {
    // Replaces grantpt(3), unlockpt(3) and ptsname(3), which the Glibc module lacks.
    let (unlock, getNumber) = (UInt(0x4004_5431), UInt(0x8004_5430))
    side = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (locked, number): (Int32, Int32) = (0, 0)
    try #require(side >= 0 && ioctl(side, unlock, &locked) == 0)
    try #require(ioctl(side, getNumber, &number) == 0)
    terminal = "/dev/pts/\(number)"
  }

  /// Waits for the question, then types.
  func answer(_ question: String, with line: String) throws {
    try waitFor(question)
    press(line + "\n")
  }

  /// Waits for the question.
  func waitFor(_ question: String) throws {
    let before = seen.count
    try eventually("a question; seen: \(seen)") {
      readOutput(milliseconds: 200)
      return seen.dropFirst(before).contains(question)
    }
    try #require(!echoes, "the terminal shows what is typed")
  }

  /// Types without waiting for a question.
  func press(_ key: String) { _ = write(side, key, key.utf8.count) }

  var echoes: Bool {
    var settings = termios()
    return tcgetattr(side, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Reads the terminal's new output.
  func readOutput(milliseconds: Int32 = 0) {
    var entry = pollfd(fd: side, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, milliseconds) > 0 else { return }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(side, &bytes, bytes.count)
    if count > 0 { seen += String(decoding: bytes[..<count], as: UTF8.self) }
  }

  deinit { close(side) }
}

/// A secured home, and commands that run on it at terminals.
struct TerminalFixture {
  let home: TestHome
  let files = ScratchFolder()

  init() throws { home = try TestHome.secured() }

  /// What the commands have written to standard error.
  var errors: String { files.contents(of: "errors") ?? "" }

  func start(
    _ arguments: [String], of program: String = Program.datavault, in home: TestHome? = nil,
    at user: TerminalUser, descriptors: [Int32: Child.Descriptor] = [:],
    through wrapper: [String] = []
  ) throws -> Child {
    try Child(
      arguments + ["--home", (home ?? self.home).path], of: program,
      descriptors: [
        // Opening it makes it the controlling terminal of the new session. The process then closes
        // it.
        0: .terminal(user.terminal), 1: .writing(files.path("output")),
        2: .writing(files.path("errors")),
      ].merging(descriptors) { $1 }, through: wrapper)
  }

  /// Starts a command at a terminal of its own.
  func start(
    _ arguments: [String], in home: TestHome? = nil, through wrapper: [String] = []
  ) throws -> (TerminalUser, Child) {
    let user = try TerminalUser()
    return (user, try start(arguments, in: home, at: user, through: wrapper))
  }

  /// Runs a command as a shell runs a job, in its own process group, which the terminal can stop.
  ///
  /// It writes the command's process id to a file.
  static let job = [
    "/usr/bin/python3", "-c",
    """
    import os, signal, sys
    terminal = os.open("/dev/tty", os.O_RDWR)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        with open(sys.argv[1], "w") as file: file.write(str(os.getpid()))
        os.execv(sys.argv[2], sys.argv[2:])
    status = os.waitpid(job, 0)[1]
    sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    """,
  ]
}
