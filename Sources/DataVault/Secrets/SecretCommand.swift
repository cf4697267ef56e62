internal import Glibc
internal import SystemPackage
internal import VaultCrypto

/// A program whose standard output is a secret.
struct SecretCommand {
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
      if !hasEnded {
        // The group, because a script has started programs of its own.
        _ = kill(-process, SIGKILL)
        _ = Self.wait(process, options: 0)
      }
    }
    let secret = try SecretReader(descriptor, name: name, deadline: deadline).readSecret()
    while true {
      let (status, isKnown) = Self.wait(process, options: WNOHANG)
      if let status {
        hasEnded = true
        guard isKnown, status == 0 else { throw Self.failure(program, isKnown ? status : nil) }
        return secret
      }
      guard ContinuousClock.now < deadline else {
        throw VaultError(.secretUnavailable, "\(name) has not ended within its time limit")
      }
      usleep(2000)
    }
  }

  /// - Returns: the status of a process that has ended, and whether the system still knew it; nil while it runs.
  private static func wait(_ process: pid_t, options: Int32) -> (status: Int32?, isKnown: Bool) {
    var status: Int32 = 0
    while true {
      let result = unsafe waitpid(process, &status, options)
      if result == process { return (status, true) }
      if result == 0 { return (nil, true) }
      // A process that ignores SIGCHLD has no statuses.
      if errno != EINTR { return (0, false) }
    }
  }

  private static func failure(_ program: String, _ status: Int32?) -> VaultError {
    let end =
      switch status {
      case .none:
        "ended with an exit code that this process cannot read, because it ignores SIGCHLD"
      case .some(let status) where status & 0x7F == 0: "ended with exit code \(status >> 8 & 0xFF)"
      case .some(let status): "was ended by signal \(status & 0x7F)"
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
