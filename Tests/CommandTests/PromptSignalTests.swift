import Foundation
import Glibc
import TestSupport
import Testing

/// Signals while a command asks for a secret.
@Suite struct PromptSignalTests {
  private let bench: TerminalFixture

  init() throws { bench = try TerminalFixture() }

  /// The signals that end a process, without SIGKILL, which cannot be caught, and SIGPIPE, which
  /// the program ignores.
  private static let fatalSignals: [Int32] =
    [
      SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2,
      SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSYS,
    ] + [34, 64]

  @Test(arguments: fatalSignals)
  func `a fatal signal during the question restores the echo`(number: Int32) throws {
    let user = try TerminalUser()
    // Kept open, because a terminal loses its settings when its last user closes it.
    let holder = open(user.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    let child = try bench.start(["items", "messaging"], at: user)
    try eventually { !user.echoes }
    kill(child.id, number)
    #expect(child.wait() == 128 + number)
    #expect(user.echoes)
  }

  @Test func `Control-C during the question restores the echo`() throws {
    let user = try TerminalUser()
    let holder = open(user.terminal, O_RDWR | O_NOCTTY)
    defer { close(holder) }
    let child = try bench.start(
      ["items", "messaging"], at: user, through: TerminalFixture.job + [bench.files.path("id")])
    try user.waitFor("Password of vault messaging: ")
    user.press("\u{3}")
    #expect(child.wait() == 128 + SIGINT)
    #expect(user.echoes)
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
    let (user, child) = try bench.start(["items", "messaging"], through: wrapper)
    try user.waitFor("Password of vault messaging: ")
    kill(child.id, number)
    user.press(TestHome.password + "\n")
    #expect(child.wait() == 0)
  }
}
