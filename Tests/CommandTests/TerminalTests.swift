import Foundation
import Glibc
import Testing

@Suite struct TerminalTests {
  /// A pseudo-terminal, with a person who types when asked.
  private final class Person {
    let side: Int32
    let terminal: String
    private(set) var seen = ""

    init() throws {
      // What grantpt(3), unlockpt(3) and ptsname(3) do; Glibc's module lacks them.
      let (unlock, getNumber) = (UInt(0x4004_5431), UInt(0x8004_5430))
      side = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
      var (locked, number): (Int32, Int32) = (0, 0)
      try #require(side >= 0 && ioctl(side, unlock, &locked) == 0)
      try #require(ioctl(side, getNumber, &number) == 0)
      terminal = "/dev/pts/\(number)"
    }

    /// Waits for the question, then types.
    func answer(_ question: String, with line: String) throws {
      try hear(question)
      press(line + "\n")
    }

    /// Waits for the question.
    func hear(_ question: String) throws {
      let deadline = Date().addingTimeInterval(120)
      let before = seen.count
      while !seen.dropFirst(before).contains(question) {
        try #require(Date() < deadline, "no question; seen: \(seen)")
        look(milliseconds: 200)
      }
      try #require(!echoes, "the terminal shows what is typed")
    }

    /// Types, whatever is asked.
    func press(_ key: String) {
      _ = write(side, key, key.utf8.count)
    }

    var echoes: Bool {
      var settings = termios()
      return tcgetattr(side, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Takes in what has appeared.
    func look(milliseconds: Int32 = 0) {
      var entry = pollfd(fd: side, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, milliseconds) > 0 else { return }
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(side, &bytes, bytes.count)
      if count > 0 { seen += String(decoding: bytes[..<count], as: UTF8.self) }
    }

    deinit { close(side) }
  }

  private func start(
    _ arguments: [String], at person: Person, input: String = "", files: ScratchFolder,
    through wrapper: [String] = []
  ) throws -> Child {
    try Child(
      arguments, environment: [:],
      descriptors: [
        // Opening it makes it the terminal of the new session; it is then closed again.
        0: .terminal(person.terminal), 1: .writing(files.path("output")),
        2: .writing(files.path("errors")), 9: .reading(try files.file("input", input.utf8)),
      ], through: wrapper)
  }

  @Test func `the password is asked for at the terminal and not shown`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let child = try start(
      ["queue", "receive", "c", "--home", home.path], at: person, input: "", files: files)
    try person.answer("Password of vault messaging: ", with: TestHome.password)
    #expect(child.wait() == 0)
    person.look()
    #expect(try files.bytes("output") == Array("first\n".utf8))
    #expect(!person.seen.contains(TestHome.password))
  }

  @Test func `a wrong password at the terminal ends with 77`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let child = try start(
      ["names", "messaging", "--home", home.path], at: person, input: "", files: files)
    try person.answer("Password of vault messaging: ", with: "wrong")
    #expect(child.wait() == 77)
  }

  @Test func `a new password is asked for twice, and both must be the same`() throws {
    let home = try TestHome.fresh()
    let files = try ScratchFolder()
    for (again, status) in [("different", 65), (TestHome.password, 0)] as [(String, Int32)] {
      let person = try Person()
      let child = try start(
        ["create", "v", "--home", home.path], at: person, input: "", files: files)
      try person.answer("New password of vault v: ", with: TestHome.password)
      try person.answer("The same again: ", with: again)
      #expect(child.wait() == status)
    }
    #expect(try home.unlocked("names", "v").status == 0)
  }

  /// Signals that end a process; SIGKILL cannot be caught, SIGPIPE is ignored by this program.
  private static let fatalSignals: [Int32] =
    [
      SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2,
      SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSYS,
    ] + [34, 64]

  @Test(arguments: fatalSignals)
  func `a signal during the question leaves the terminal with its echo`(number: Int32) throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    // Held open, as a terminal forgets its settings when the last of its users closes it.
    let holder = open(person.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    let child = try start(
      ["names", "messaging", "--home", home.path], at: person, input: "", files: files)
    var settings = termios()
    let deadline = Date().addingTimeInterval(120)
    repeat {
      try #require(Date() < deadline)
      tcgetattr(holder, &settings)
    } while settings.c_lflag & tcflag_t(ECHO) != 0
    kill(child.id, number)
    #expect(child.wait() == 128 + number)
    tcgetattr(holder, &settings)
    #expect(settings.c_lflag & tcflag_t(ECHO) != 0)
  }

  /// Runs a command as a shell runs a job, in a process group of its own, which the terminal can stop.
  ///
  /// Its process id goes to a file.
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

  @Test func `a stopped question leaves the echo on, and goes on as before`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let child = try start(
      ["queue", "receive", "c", "--home", home.path], at: person, files: files,
      through: Self.job + [files.path("id")])
    try person.hear("Password of vault messaging: ")
    let id = try #require(pid_t(String(decoding: try files.bytes("id"), as: UTF8.self)))
    for round in 0..<2 {
      // Control-Z, and a stop that no process can see coming.
      if round == 0 { person.press("\u{1A}") } else { kill(id, SIGSTOP) }
      let deadline = Date().addingTimeInterval(120)
      while state(of: id) != "T" {
        try #require(Date() < deadline, "it was not stopped")
        usleep(1000)
      }
      if round == 0 { #expect(person.echoes) }
      kill(id, SIGCONT)
      try person.hear("Password of vault messaging: ")
    }
    person.press(TestHome.password + "\n")
    #expect(child.wait() == 0)
    person.look()
    #expect(try files.bytes("output") == Array("first\n".utf8))
    #expect(!person.seen.contains(TestHome.password))
  }

  @Test func `Control-C during the question leaves the terminal with its echo`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let holder = open(person.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    let child = try start(
      ["names", "messaging", "--home", home.path], at: person, files: files,
      through: Self.job + [files.path("id")])
    try person.hear("Password of vault messaging: ")
    person.press("\u{3}")
    #expect(child.wait() == 128 + SIGINT)
    #expect(person.echoes)
  }

  @Test func `a signal that is ignored ends no question`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let child = try start(["names", "messaging", "--home", home.path], at: person, files: files)
    try person.hear("Password of vault messaging: ")
    kill(child.id, SIGPIPE)
    person.press(TestHome.password + "\n")
    #expect(child.wait() == 0)
  }

  /// Runs a command in the background of its terminal, where the kernel cannot stop it: it ignores SIGTTIN
  /// and SIGTTOU, or nobody is left who could let it go on.
  private static let background = [
    "/usr/bin/python3", "-c",
    """
    import os, signal, sys
    reading, writing = os.pipe()
    if os.fork() == 0:
        # A process group of its own, whose parent goes.
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

  @Test(arguments: ["ignored", "orphaned"])
  func `a question in the background says so, and not that the terminal closed`(
    how: String
  ) throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let child = try start(
      ["names", "messaging", "--home", home.path], at: person, files: files,
      through: Self.background + [how])
    #expect(child.wait() == 77)
    let errors = String(decoding: try files.bytes("errors"), as: UTF8.self)
    #expect(errors.contains("this command runs in the background"), "\(errors)")
    #expect(errors.contains("hint: run it in the foreground (fg), or give --password-file FILE"))
  }

  @Test func `a terminal that closes during the question is named`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let child = try start(["names", "messaging", "--home", home.path], at: person, files: files)
    try person.hear("Password of vault messaging: ")
    person.press("\u{4}")  // Control-D: the end of what is typed
    #expect(child.wait() == 77)
    let errors = String(decoding: try files.bytes("errors"), as: UTF8.self)
    #expect(errors.contains("the terminal closed before anything was entered"), "\(errors)")
  }

  @Test func `what was polling to a signal stays so during the question`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    let child = try start(
      ["names", "messaging", "--home", home.path], at: person, files: files,
      through: [
        "/usr/bin/python3", "-c",
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
      ])
    try person.hear("Password of vault messaging: ")
    kill(child.id, SIGHUP)
    person.press(TestHome.password + "\n")
    #expect(child.wait() == 0)
  }

  @Test func `a recovery code is asked for and not shown`() throws {
    let home = try TestHome.fresh()
    #expect(
      try home.run("create", "v", "--new-password-file", home.folder.path("password")).status == 0)
    let added = try home.unlocked("slots", "add", "v", "paper", "--recovery-code")
    let code = added.text.trimmingCharacters(in: .newlines)
    #expect(code.count == 44)
    let files = try ScratchFolder()
    func open(_ arguments: [String]) throws -> (status: Int32, seen: String) {
      let person = try Person()
      let child = try start(arguments + ["--home", home.path], at: person, files: files)
      try person.answer("Recovery code of vault v: ", with: code.lowercased())
      let status = child.wait()
      person.look()
      return (status, person.seen)
    }
    var outcome = try open(["names", "v", "--recovery-code-prompt"])
    #expect(outcome.status == 0)
    #expect(!outcome.seen.contains(code.lowercased().prefix(20)))
    outcome = try open(["rotate", "v", "--recovery-code-prompt", "--drop", "password"])
    #expect(outcome.status == 0)
    // Without a password there is nothing else to ask for.
    outcome = try open(["names", "v"])
    #expect(outcome.status == 0)
    let alone = try home.run("names", "v")
    #expect(alone.status == 77)
    #expect(alone.errors.contains("hint: give --recovery-code-file"))
    #expect(
      try home.run("names", "v", "--recovery-code-prompt", "--slot-key-file", "x").status == 64)
  }

  @Test func `a salt is asked for where that is said, a new one twice`() throws {
    let home = try TestHome.fresh()
    let files = try ScratchFolder()
    var person = try Person()
    var child = try start(
      ["create", "v", "--new-salt-prompt", "--home", home.path], at: person, files: files)
    try person.answer("New password of vault v: ", with: TestHome.password)
    try person.answer("The same again: ", with: TestHome.password)
    try person.answer("New salt of vault v: ", with: "some salt")
    try person.answer("The same again: ", with: "some salt")
    #expect(child.wait() == 0)
    for (salt, status) in [("some salt", 0), ("another", 77)] as [(String, Int32)] {
      person = try Person()
      child = try start(
        ["names", "v", "--salt-prompt", "--home", home.path], at: person, files: files)
      try person.answer("Password of vault v: ", with: TestHome.password)
      try person.answer("Salt of vault v: ", with: salt)
      #expect(child.wait() == status)
    }
  }
}
