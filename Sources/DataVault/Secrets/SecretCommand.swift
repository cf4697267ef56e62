internal import Dispatch
internal import Glibc
internal import SystemPackage
internal import VaultCrypto

/// A program whose standard output is a secret.
struct SecretCommand {
  /// The time in which a killed process ends, also on a slow machine.
  private static let timeLimitOfEnd = Duration.seconds(1)

  private let arguments: [String]
  private let timeLimit: Duration

  init(_ arguments: [String], timeLimit: Duration) {
    self.arguments = arguments
    self.timeLimit = timeLimit
  }

  /// Runs the program to its end.
  ///
  /// - Throws: `secretUnavailable` if the program does not start, fails, or exceeds its time limit; `secretTooLarge`.
  func output() throws(VaultError) -> SecretBytes {
    guard let program = arguments.first, !program.isEmpty,
      !arguments.contains(where: { $0.utf8.contains(0) })
    else {
      throw VaultError(
        .invalidArgument, "the command for the secret names no program",
        hint: "give a program and its arguments, none of them with a NUL character")
    }
    let name = "the output of command '\(program)'"
    let deadline = ContinuousClock.now + timeLimit
    let (process, descriptor) = try start(program)
    var hasEnded = false
    defer {
      _ = close(descriptor)
      if !hasEnded { Self.end(process) }
    }
    let secret = try SecretReader(descriptor, name: name, deadline: deadline).readSecret()
    switch Self.wait(for: process, until: deadline) {
    case .running:
      throw VaultError(.secretUnavailable, "\(name) has not ended within its time limit")
    case .exited(0):
      hasEnded = true
      return secret
    case let outcome:
      hasEnded = true
      throw Self.failure(program, outcome)
    }
  }

  /// How a process is, as waitpid(2) states it.
  private enum Outcome {
    case running
    case exited(_ code: Int32)
    case signalled(_ number: Int32)
    /// It has ended, and the system keeps no status for a process that ignores SIGCHLD.
    case unknown

    init(of process: pid_t, options: Int32) {
      var status: Int32 = 0
      var result: pid_t
      repeat {
        result = unsafe waitpid(process, &status, options)
      } while result == -1 && errno == EINTR
      self =
        switch result {
        case 0: .running
        case process where status & 0x7F == 0: .exited(status >> 8 & 0xFF)
        case process: .signalled(status & 0x7F)
        default: .unknown
        }
    }
  }

  private static func wait(
    for process: pid_t, until deadline: ContinuousClock.Instant
  ) -> Outcome {
    while true {
      let outcome = Outcome(of: process, options: WNOHANG)
      guard case .running = outcome, ContinuousClock.now < deadline else { return outcome }
      usleep(2000)
    }
  }

  /// Kills a process with its group, and does not wait for one that cannot be killed.
  private static func end(_ process: pid_t) {
    // The group, because a script has started programs of its own.
    let killsGroup = kill(-process, SIGKILL) == 0
    guard case .running = Outcome(of: process, options: WNOHANG) else { return }
    // The process can have left its group.
    let killsProcess = kill(process, SIGKILL) == 0
    let limit: Duration = killsGroup || killsProcess ? timeLimitOfEnd : .zero
    guard case .running = wait(for: process, until: .now + limit) else { return }
    // A program of another user (set-user-ID) goes on: a thread of its own collects its status at its end.
    DispatchQueue(label: "datavault.secret-command").async {
      _ = Outcome(of: process, options: 0)
    }
  }

  private static func failure(_ program: String, _ outcome: Outcome) -> VaultError {
    let end =
      switch outcome {
      case .exited(let code): "ended with exit code \(code)"
      case .signalled(let number): "was ended by signal \(number)"
      case .running, .unknown:
        "ended with an exit code that this process cannot read, because it ignores SIGCHLD"
      }
    return VaultError(
      .secretUnavailable, "the command '\(program)' gave no secret: it \(end)",
      hint: "run the command by itself, as this user")
  }

  /// Starts the program in a process group of its own, with `/dev/null` as its standard input.
  ///
  /// - Returns: its process, and the end of the pipe with its standard output.
  private func start(_ program: String) throws(VaultError) -> (pid_t, Int32) {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw failedStart(program, errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { _ = close(ends[1]) }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // The threads of this process block signals and its program ignores some: a new program expects neither.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe posix_spawnattr_setsigmask(&attributes, &signals)
    unsafe sigfillset(&signals)
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    unsafe posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    // execve(2) takes the arguments as an array that ends with a null pointer.
    var words: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    var process = pid_t()
    let result = unsafe posix_spawnp(&process, program, &actions, &attributes, &words, environ)
    guard result == 0 else {
      _ = close(ends[0])
      throw failedStart(program, result)
    }
    return (process, ends[0])
  }

  private func failedStart(_ program: String, _ number: Int32) -> VaultError {
    VaultError(
      .secretUnavailable, "the command '\(program)' does not start: \(Errno(rawValue: number))",
      hint: "check the program's name")
  }
}
