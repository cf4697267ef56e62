import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

/// A running process of one of our programs.
struct Child {
  /// The file behind one of its descriptors.
  enum Descriptor {
    case reading(String)
    case writing(String)
    /// A terminal, which becomes the controlling terminal of the process.
    case terminal(String)
    case inherited(Int32)
    case closed
  }

  let id: pid_t
  private let command: [String]
  private let errors: String?

  /// Starts the process.
  ///
  /// - Parameters:
  ///   - program: the path of the program; `datavault` by default.
  ///   - descriptors: by default standard input, output and error are `/dev/null`.
  ///   - wrapper: a command that runs the command given after it.
  init(
    _ arguments: [String], of program: String = Program.datavault,
    environment: [String: String] = [:],
    descriptors: [Int32: Descriptor] = [:], through wrapper: [String] = []
  ) throws {
    // A write to a process that has ended must fail its test, and not end all tests.
    signal(SIGPIPE, SIG_IGN)
    let nothing: [Int32: Descriptor] = [
      0: .reading("/dev/null"), 1: .writing("/dev/null"), 2: .writing("/dev/null"),
    ]
    let descriptors = nothing.merging(descriptors) { $1 }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, descriptor) in descriptors.sorted(by: { $0.key < $1.key }) {
      switch descriptor {
      case .reading(let path):
        posix_spawn_file_actions_addopen(&actions, number, path, O_RDONLY, 0)
      case .writing(let path):
        posix_spawn_file_actions_addopen(
          &actions, number, path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
      case .terminal(let path):
        posix_spawn_file_actions_addopen(&actions, number, path, O_RDWR, 0)
      case .inherited(let other):
        posix_spawn_file_actions_adddup2(&actions, other, number)
      case .closed:
        posix_spawn_file_actions_addclose(&actions, number)
      }
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    let setSession: Int16 = 0x80  // POSIX_SPAWN_SETSID
    posix_spawnattr_setflags(
      &attributes, setSession | Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))

    // The tester's own home, credentials, and ignored and blocked signals must not affect the test.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    var variables = Program.commandEnvironment
    for name in [
      "DATAVAULT_HOME", "STATE_DIRECTORY", "XDG_DATA_HOME", "CREDENTIALS_DIRECTORY",
      "DATAVAULT_REQUIRE_SECURED",
    ] {
      variables[name] = nil
    }
    variables.merge(environment) { $1 }

    command = wrapper + [program] + arguments
    if case .writing(let path) = descriptors[2] { errors = path } else { errors = nil }
    var argumentPointers = command.map { strdup($0) } + [nil]
    var variablePointers = variables.map { strdup("\($0)=\($1)") } + [nil]
    defer { for pointer in argumentPointers + variablePointers { free(pointer) } }
    var id: pid_t = 0
    let result = posix_spawnp(
      &id, command[0], &actions, &attributes, &argumentPointers, &variablePointers)
    guard result == 0 else { throw Errno(rawValue: result) }
    self.id = id
  }

  /// Waits for the end of the process and returns its exit code, or 128 plus the signal that ended
  /// it.
  ///
  /// A process that does not end in time is killed, and the test records an issue.
  func wait() -> Int32 {
    var status: Int32 = 0
    do {
      try eventually("the command ends") { waitpid(id, &status, WNOHANG) != 0 }
    } catch {
      Issue.record(error)
      kill(id, SIGKILL)
      while waitpid(id, &status, 0) < 0, errno == EINTR {}
    }
    let code = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    let said = errors.flatMap { FileManager.default.contents(atPath: $0) } ?? Data()
    TestLog.note("\(command.joined(separator: " ")): exit code \(code)")
    TestLog.note(String(decoding: said, as: UTF8.self))
    return code
  }

  /// Kills the process when the file has reached this size.
  ///
  /// - Returns: false if the process ended before.
  func killed(when path: String, reaches byteCount: Int) -> Bool {
    var status = stat()
    while stat(path, &status) != 0 || status.st_size < byteCount {
      if hasEnded { break }
      // The kill comes as soon as the file has its size, which no one announces.
      usleep(200)
    }
    kill(id, SIGKILL)
    return wait() == 128 + SIGKILL
  }

  /// Whether the process has ended; `wait` can still be called.
  var hasEnded: Bool {
    var exit = siginfo_t()
    return waitid(P_PID, id_t(id), &exit, WEXITED | WNOHANG | WNOWAIT) != 0
      || exit.si_signo == SIGCHLD
  }
}
