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
      let deadline = Date().addingTimeInterval(30)
      let before = seen.count
      while !seen.dropFirst(before).contains(question) {
        try #require(Date() < deadline, "no question; seen: \(seen)")
        look(milliseconds: 200)
      }
      // The echo is off a moment after the question is there.
      while echoes {
        try #require(Date() < deadline, "the terminal still shows what is typed")
        usleep(1000)
      }
      _ = write(side, line + "\n", line.utf8.count + 1)
    }

    private var echoes: Bool {
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
    _ arguments: [String], at person: Person, input: String, files: ScratchFolder
  ) throws -> Child {
    try Child(
      arguments, environment: [:],
      descriptors: [
        // Opening it makes it the terminal of the new session; it is then closed again.
        0: .terminal(person.terminal), 1: .writing(files.path("output")),
        2: .writing(files.path("errors")), 9: .reading(try files.file("input", input.utf8)),
      ])
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

  @Test func `a signal during the question leaves the terminal with its echo`() throws {
    let home = try TestHome.secured()
    let person = try Person()
    let files = try ScratchFolder()
    // Held open, as a terminal forgets its settings when the last of its users closes it.
    let holder = open(person.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    let child = try start(
      ["names", "messaging", "--home", home.path], at: person, input: "", files: files)
    var settings = termios()
    let deadline = Date().addingTimeInterval(30)
    repeat {
      try #require(Date() < deadline)
      tcgetattr(holder, &settings)
    } while settings.c_lflag & tcflag_t(ECHO) != 0
    kill(child.id, SIGTERM)
    #expect(child.wait() == 128 + SIGTERM)
    tcgetattr(holder, &settings)
    #expect(settings.c_lflag & tcflag_t(ECHO) != 0)
  }
}
