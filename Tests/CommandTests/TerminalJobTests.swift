import Foundation
import Glibc
import TestSupport
import Testing

/// Questions of commands that stop, run in the background, or share a terminal.
@Suite struct TerminalJobTests {
  private let bench: TerminalFixture

  init() throws { bench = try TerminalFixture() }

  private func state(of process: pid_t) -> Character? {
    let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return text?.split(separator: ") ").last?.first
  }

  /// Waits until a process waits for the lock of its terminal: see proc_locks(5).
  private func waitForLock(of process: pid_t, _ check: () throws -> Void = {}) throws {
    let wait = try Regex("-> FLOCK .* \(process) ")
    try eventually("the process waits for its turn") {
      try check()
      return try ProcFile.text("/proc/locks").firstMatch(of: wait) != nil
    }
  }

  @Test func `a stopped question turns the echo on, and asks again when it continues`() throws {
    let (user, child) = try bench.start(
      ["queue", "receive", "c"], through: TerminalFixture.job + [bench.files.path("id")])
    try user.waitFor("Password of vault messaging: ")
    let id = try #require(pid_t(String(decoding: try bench.files.bytes("id"), as: UTF8.self)))
    for round in 0..<2 {
      // Control-Z, and SIGSTOP, which no process can catch.
      if round == 0 { user.press("\u{1A}") } else { kill(id, SIGSTOP) }
      try eventually("the process stops") { state(of: id) == "T" }
      if round == 0 { #expect(user.echoes) }
      kill(id, SIGCONT)
      try user.waitFor("Password of vault messaging: ")
    }
    user.press(TestHome.password + "\n")
    #expect(child.wait() == 0)
    user.readOutput()
    #expect(try bench.files.bytes("output") == Array("first\n".utf8))
    #expect(!user.seen.contains(TestHome.password))
  }

  @Test func `a question that continues reads nothing while another command asks`() throws {
    let (user, child) = try bench.start(
      ["items", "messaging"], through: TerminalFixture.job + [bench.files.path("id")])
    try user.waitFor("Password of vault messaging: ")
    let id = try #require(pid_t(String(decoding: try bench.files.bytes("id"), as: UTF8.self)))
    user.press("\u{1A}")
    try eventually("the process stops") { state(of: id) == "T" }
    let other = open(user.terminal, O_RDWR | O_NOCTTY)
    defer { close(other) }
    try #require(flock(other, LOCK_EX) == 0)
    kill(id, SIGCONT)
    try waitForLock(of: id)
    user.press("for the other\n")
    // Nothing shows that the question leaves the line to the other command.
    usleep(500_000)
    var line = [UInt8](repeating: 0, count: 100)
    var entry = pollfd(fd: other, events: Int16(POLLIN), revents: 0)
    try #require(poll(&entry, 1, 0) == 1, "it has read the other's line")
    #expect(read(other, &line, line.count) == 14)
    flock(other, LOCK_UN)
    try user.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(user.echoes)
  }

  @Test func `two commands at one terminal, as in a pipeline, ask one after the other`() throws {
    let user = try TerminalUser()
    // The lock that a command holds while it asks.
    let holder = open(user.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    try #require(flock(holder, LOCK_EX) == 0)
    let child = try bench.start(["items", "messaging"], at: user)
    try waitForLock(of: child.id) {
      user.readOutput()
      try #require(user.seen.isEmpty, "it did not wait")
    }
    flock(holder, LOCK_UN)
    try user.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(user.echoes)
  }

  /// Runs a command in the background of its terminal, where the kernel cannot stop it.
  ///
  /// It either ignores SIGTTIN and SIGTTOU, or belongs to an orphaned process group.
  private static let background = [
    "/usr/bin/python3", "-c",
    """
    import os, signal, sys
    reading, writing = os.pipe()
    if os.fork() == 0:
        # In its own process group, whose parent exits.
        between = os.getpid()
        if sys.argv[1] == "orphaned" and os.fork() != 0: os._exit(0)
        os.setpgid(0, 0)
        if sys.argv[1] == "ignored":
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        else:
            while os.getppid() == between: pass
        job = os.fork()
        if job == 0: os.execv(sys.argv[2], sys.argv[2:])
        status = os.waitpid(job, 0)[1]
        os.write(writing, bytes([os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)]))
        os._exit(0)
    os.close(writing)
    sys.exit(os.read(reading, 1)[0])
    """,
  ]

  /// Runs a command in the background of its terminal, and in the foreground after it stopped.
  ///
  /// It writes the stop signal to a file, and the line that was typed for the foreground.
  private static let continuedJob = [
    "/usr/bin/python3", "-c",
    """
    import os, select, signal, sys
    terminal = os.open("/dev/tty", os.O_RDWR)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    select.select([terminal], [], [])
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(sys.argv[2], sys.argv[2:])
    status = os.waitpid(job, os.WUNTRACED)[1]
    stop = os.WIFSTOPPED(status) and os.WSTOPSIG(status)
    with open(sys.argv[1], "w") as file: file.write(f"{stop} {os.read(terminal, 100).decode()}")
    os.tcsetpgrp(terminal, job)
    os.kill(job, signal.SIGCONT)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
    """,
  ]

  @Test func `a question in the background stops, and is asked in the foreground`() throws {
    let (user, child) = try bench.start(
      ["queue", "receive", "c"], through: Self.continuedJob + [bench.files.path("stop")])
    user.press("typed\n")
    try user.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(try bench.files.bytes("stop") == Array("\(SIGTTIN) typed\n".utf8))
    #expect(try bench.files.bytes("output") == Array("first\n".utf8))
  }

  @Test(arguments: ["ignored", "orphaned"])
  func `a question in the background fails with that reason`(how: String) throws {
    let (user, child) = try bench.start(["items", "messaging"], through: Self.background + [how])
    #expect(child.wait() == 77)
    user.readOutput()
    #expect(user.seen.isEmpty && user.echoes, "the terminal was changed")
    #expect(bench.errors.contains("this command runs in the background"), "\(bench.errors)")
    #expect(
      bench.errors.contains("hint: run it in the foreground (fg), or give --password-file FILE"))
  }
}
