import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct TerminalTests {
  private let home: TestHome
  private let files = ScratchFolder()

  init() throws { home = try TestHome.secured() }

  private var errors: String { files.contents(of: "errors") ?? "" }

  /// A pseudo-terminal and a user who types when asked.
  private final class Person {
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
      let deadline = Date().addingTimeInterval(120)
      let before = seen.count
      while !seen.dropFirst(before).contains(question) {
        try #require(Date() < deadline, "no question; seen: \(seen)")
        readOutput(milliseconds: 200)
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

  private func start(
    _ arguments: [String], in home: TestHome? = nil, at person: Person,
    through wrapper: [String] = []
  ) throws -> Child {
    try Child(
      arguments + ["--home", (home ?? self.home).path],
      descriptors: [
        // Opening it makes it the controlling terminal of the new session. The process then closes
        // it.
        0: .terminal(person.terminal), 1: .writing(files.path("output")),
        2: .writing(files.path("errors")),
      ], through: wrapper)
  }

  /// Starts a command at a terminal of its own.
  private func start(
    _ arguments: [String], in home: TestHome? = nil, through wrapper: [String] = []
  ) throws -> (Person, Child) {
    let person = try Person()
    return (person, try start(arguments, in: home, at: person, through: wrapper))
  }

  @Test func `the terminal asks for the password and does not show it`() throws {
    let (person, child) = try start(["queue", "receive", "c"])
    try person.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    person.readOutput()
    #expect(try files.bytes("output") == Array("first\n".utf8))
    #expect(!person.seen.contains(TestHome.password))
  }

  @Test func `a wrong password at the terminal ends with 77`() throws {
    let (person, child) = try start(["items", "messaging"])
    for _ in 0..<3 { try person.answer("Password of vault messaging: ", with: "wrong") }
    #expect(child.wait() == 77)
  }

  @Test func `a user who has mistyped the password can try again`() throws {
    let (person, child) = try start(["items", "messaging"])
    try person.answer("Password of vault messaging: ", with: "wrong")
    try person.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(errors.contains("try again"))
  }

  @Test(arguments: [("n", 77), ("y", 0)] as [(String, Int32)])
  func `a command that deletes asks at a terminal`(answer: String, status: Int32) throws {
    let person = try Person()
    let child = try home.start(
      "queue", "purge", "c",
      descriptors: [0: .terminal(person.terminal), 2: .writing(files.path("errors"))])
    person.press(answer + "\n")
    #expect(child.wait() == status)
    #expect(errors.contains("delete the messages of channel 'c'? [y/N]"))
    let left = try home.unlocked("queue", "history", "c").text
    #expect(left == (status == 0 ? "" : "first\n"))
  }

  @Test func `the terminal asks for a new password twice, and both must match`() throws {
    let home = try TestHome.fresh()
    for (again, status) in [("different", 65), (TestHome.password, 0)] as [(String, Int32)] {
      let (person, child) = try start(["create", "v"], in: home)
      try person.answer("New password of vault v: ", with: TestHome.password)
      try person.answer("The same again: ", with: again)
      #expect(child.wait() == status)
    }
    #expect(try home.unlocked("items", "v").status == 0)
  }

  @Test func `a password that the terminal can have cut off is refused`() throws {
    let home = try TestHome.fresh()
    for (length, status) in [(4095, 65), (4096, 65), (10_000, 65), (4000, 0)] as [(Int, Int32)] {
      let (person, child) = try start(["create", "v"], in: home)
      let password = String(repeating: "p", count: length)
      try person.answer("New password of vault v: ", with: password)
      if status == 0 { try person.answer("The same again: ", with: password) }
      #expect(child.wait() == status, "\(length) bytes")
      #expect(errors.contains("--new-password-file") == (status != 0), "\(errors)")
      #expect(FileManager.default.fileExists(atPath: home.vault("v")) == (status == 0))
    }
  }

  /// The signals that end a process, without SIGKILL, which cannot be caught, and SIGPIPE, which
  /// the program ignores.
  private static let fatalSignals: [Int32] =
    [
      SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2,
      SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSYS,
    ] + [34, 64]

  @Test(arguments: fatalSignals)
  func `a fatal signal during the question restores the echo`(number: Int32) throws {
    let person = try Person()
    // Kept open, because a terminal loses its settings when its last user closes it.
    let holder = open(person.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    let child = try start(["items", "messaging"], at: person)
    let deadline = Date().addingTimeInterval(120)
    while person.echoes { try #require(Date() < deadline) }
    kill(child.id, number)
    #expect(child.wait() == 128 + number)
    #expect(person.echoes)
  }

  /// Runs a command as a shell runs a job, in its own process group, which the terminal can stop.
  ///
  /// It writes the command's process id to a file.
  private static let job = [
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

  private func state(of process: pid_t) -> Character? {
    let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return text?.split(separator: ") ").last?.first
  }

  @Test func `a stopped question turns the echo on, and asks again when it continues`() throws {
    let (person, child) = try start(
      ["queue", "receive", "c"], through: Self.job + [files.path("id")])
    try person.waitFor("Password of vault messaging: ")
    let id = try #require(pid_t(String(decoding: try files.bytes("id"), as: UTF8.self)))
    for round in 0..<2 {
      // Control-Z, and SIGSTOP, which no process can catch.
      if round == 0 { person.press("\u{1A}") } else { kill(id, SIGSTOP) }
      let deadline = Date().addingTimeInterval(120)
      while state(of: id) != "T" {
        try #require(Date() < deadline, "the process did not stop")
        usleep(1000)
      }
      if round == 0 { #expect(person.echoes) }
      kill(id, SIGCONT)
      try person.waitFor("Password of vault messaging: ")
    }
    person.press(TestHome.password + "\n")
    #expect(child.wait() == 0)
    person.readOutput()
    #expect(try files.bytes("output") == Array("first\n".utf8))
    #expect(!person.seen.contains(TestHome.password))
  }

  @Test func `a question that continues reads nothing while another command asks`() throws {
    let (person, child) = try start(["items", "messaging"], through: Self.job + [files.path("id")])
    try person.waitFor("Password of vault messaging: ")
    let id = try #require(pid_t(String(decoding: try files.bytes("id"), as: UTF8.self)))
    person.press("\u{1A}")
    let deadline = Date().addingTimeInterval(120)
    while state(of: id) != "T" {
      try #require(Date() < deadline, "the process did not stop")
      usleep(1000)
    }
    let other = open(person.terminal, O_RDWR | O_NOCTTY)
    defer { close(other) }
    try #require(flock(other, LOCK_EX) == 0)
    kill(id, SIGCONT)
    usleep(200_000)
    person.press("for the other\n")
    usleep(500_000)
    var line = [UInt8](repeating: 0, count: 100)
    var entry = pollfd(fd: other, events: Int16(POLLIN), revents: 0)
    try #require(poll(&entry, 1, 0) == 1, "it has read the other's line")
    #expect(read(other, &line, line.count) == 14)
    flock(other, LOCK_UN)
    try person.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(person.echoes)
  }

  @Test func `two commands at one terminal, as in a pipeline, ask one after the other`() throws {
    let person = try Person()
    // The lock that a command holds while it asks.
    let holder = open(person.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    try #require(flock(holder, LOCK_EX) == 0)
    let child = try start(["items", "messaging"], at: person)
    let deadline = Date().addingTimeInterval(120)
    // See proc_locks(5).
    let wait = try Regex("-> FLOCK .* \(child.id) ")
    while try String(contentsOfFile: "/proc/locks", encoding: .utf8).firstMatch(of: wait) == nil {
      person.readOutput(milliseconds: 10)
      try #require(person.seen.isEmpty && Date() < deadline, "it did not wait")
    }
    flock(holder, LOCK_UN)
    try person.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(person.echoes)
  }

  @Test func `Control-C during the question restores the echo`() throws {
    let person = try Person()
    let holder = open(person.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    let child = try start(
      ["items", "messaging"], at: person, through: Self.job + [files.path("id")])
    try person.waitFor("Password of vault messaging: ")
    person.press("\u{3}")
    #expect(child.wait() == 128 + SIGINT)
    #expect(person.echoes)
  }

  /// A signal that the program ignores, and one that its parent process ignores.
  @Test(
    arguments: [
      (SIGPIPE, []),
      (
        SIGHUP,
        [
          "/usr/bin/python3", "-c",
          "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
        ]
      ),
    ] as [(Int32, [String])])
  func `an ignored signal does not end the question`(number: Int32, wrapper: [String]) throws {
    let (person, child) = try start(["items", "messaging"], through: wrapper)
    try person.waitFor("Password of vault messaging: ")
    kill(child.id, number)
    person.press(TestHome.password + "\n")
    #expect(child.wait() == 0)
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
    let (person, child) = try start(
      ["queue", "receive", "c"], through: Self.continuedJob + [files.path("stop")])
    person.press("typed\n")
    try person.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    #expect(try files.bytes("stop") == Array("\(SIGTTIN) typed\n".utf8))
    #expect(try files.bytes("output") == Array("first\n".utf8))
  }

  @Test(arguments: ["ignored", "orphaned"])
  func `a question in the background fails with that reason`(how: String) throws {
    let (person, child) = try start(["items", "messaging"], through: Self.background + [how])
    #expect(child.wait() == 77)
    person.readOutput()
    #expect(person.seen.isEmpty && person.echoes, "the terminal was changed")
    #expect(errors.contains("this command runs in the background"), "\(errors)")
    #expect(errors.contains("hint: run it in the foreground (fg), or give --password-file FILE"))
  }

  @Test func `a terminal that closes during the question is reported`() throws {
    let (person, child) = try start(["items", "messaging"])
    try person.waitFor("Password of vault messaging: ")
    person.press("\u{4}")  // Control-D: the end of the input
    #expect(child.wait() == 77)
    #expect(errors.contains("the terminal closed before anything was entered"), "\(errors)")
  }

  @Test func `the terminal asks for a recovery code and does not show it`() throws {
    let home = try TestHome.fresh()
    try home.create("v")
    let added = try home.unlocked("slots", "add", "v", "paper", "--recovery-code")
    let code = added.text.trimmingCharacters(in: .newlines)
    #expect(code.count == 44)
    func open(_ arguments: [String]) throws -> (status: Int32, seen: String) {
      let (person, child) = try start(arguments, in: home)
      try person.answer("Recovery code of vault v: ", with: code.lowercased())
      let status = child.wait()
      person.readOutput()
      return (status, person.seen)
    }
    let outcome = try open(["items", "v", "--recovery-code-prompt"])
    #expect(outcome.status == 0)
    #expect(!outcome.seen.contains(code.lowercased().prefix(20)))
    #expect(try open(["rotate", "v", "--recovery-code-prompt", "--drop", "password"]).status == 0)
    // A vault without a password asks for the recovery code by default.
    #expect(try open(["items", "v"]).status == 0)
    try home.run("items", "v").expect(77, says: "hint: give --recovery-code-file")
    try home.run("items", "v", "--recovery-code-prompt", "--unlock-key-file", "x").expect(64)
  }

  @Test func `the terminal asks for a salt with --salt-prompt, and for a new salt twice`() throws {
    let home = try TestHome.fresh()
    var (person, child) = try start(["create", "v", "--new-salt-prompt"], in: home)
    try person.answer("New password of vault v: ", with: TestHome.password)
    try person.answer("The same again: ", with: TestHome.password)
    try person.answer("New salt of vault v: ", with: "some salt")
    try person.answer("The same again: ", with: "some salt")
    #expect(child.wait() == 0)
    for (salt, status) in [("some salt", 0), ("another", 77)] as [(String, Int32)] {
      (person, child) = try start(["items", "v", "--salt-prompt"], in: home)
      for _ in 0..<(status == 0 ? 1 : 3) {
        try person.answer("Password of vault v: ", with: TestHome.password)
        try person.answer("Salt of vault v: ", with: salt)
      }
      #expect(child.wait() == status)
    }
  }
}
