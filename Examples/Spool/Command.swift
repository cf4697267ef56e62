internal import Foundation
internal import Glibc
internal import Synchronization

/// A command that the daemon runs once for each message.
struct Command: Sendable {
  /// The program, found in $PATH, and its arguments.
  let arguments: [String]
  /// How long the command can run.
  ///
  /// Then it is killed with all processes that it has started.
  let limit: Duration

  /// How often the daemon checks whether a command that does not read has ended.
  private static let endLookMilliseconds: Int32 = 100

  /// Runs the command to its end, even if the task is cancelled.
  ///
  /// The environment describes the message. The payload goes through a pipe to standard input. It
  /// is never an argument, a variable or a file.
  ///
  /// - Returns: why the command failed; nil if it exited with 0.
  func run(
    _ payload: [UInt8], id: String?, attempt: Int, timetoken: String
  ) async -> String? {
    let variables = [
      "MESSAGE_ID": id ?? "", "MESSAGE_ATTEMPT": String(attempt), "MESSAGE_TIMETOKEN": timetoken,
    ]
    return await withCheckedContinuation { continuation in
      // Waiting blocks the thread, so it must not run on the cooperative pool.
      Thread.detachNewThread { continuation.resume(returning: runToEnd(payload, variables)) }
    }
  }

  private func runToEnd(_ input: [UInt8], _ variables: [String: String]) -> String? {
    guard let pipe = Descriptors.pipe() else { return Self.failure("pipe", errno) }
    var child: pid_t = 0
    let number = spawn(&child, input: pipe.reading, variables)
    close(pipe.reading)
    guard number == 0 else {
      close(pipe.writing)
      return Self.failure(arguments[0], number)
    }
    let killer = Killer(of: child, after: limit)
    Self.write(input, to: pipe.writing, of: child)
    close(pipe.writing)
    // WNOWAIT does not reap the process, so that its id cannot be reused before it is killed.
    var information = unsafe siginfo_t()
    while unsafe waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    let wasKilled = killer.stop()
    var status: Int32 = 0
    while unsafe waitpid(child, &status, 0) < 0, errno == EINTR {}
    if wasKilled { return "killed after \(limit)" }
    let signal = status & 0x7F
    let code = (status >> 8) & 0xFF
    return signal != 0 ? "ended by signal \(signal)" : code != 0 ? "exited with \(code)" : nil
  }

  /// Starts the command in its own process group, with the pipe as standard input.
  private func spawn(
    _ child: inout pid_t, input: Int32, _ variables: [String: String]
  ) -> Int32 {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // Signals that the daemon ignores or blocks must still end a command.
    var signals = sigset_t()
    for signal in [SIGPIPE, SIGTERM, SIGINT] { unsafe sigaddset(&signals, signal) }
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    var blocked = sigset_t()
    unsafe sigemptyset(&blocked)
    unsafe posix_spawnattr_setsigmask(&attributes, &blocked)
    unsafe posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))

    // These variables are for the daemon, not for the command.
    let inherited = ProcessInfo.processInfo.environment.filter {
      !["NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY"].contains($0.key)
    }
    let environment = inherited.merging(variables) { $1 }.map { "\($0)=\($1)" }
    var argumentPointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
    var environmentPointers = unsafe environment.map { unsafe strdup($0) } + [nil]
    defer {
      for index in unsafe argumentPointers.indices { unsafe free(argumentPointers[index]) }
      for index in unsafe environmentPointers.indices { unsafe free(environmentPointers[index]) }
    }
    return Descriptors.spawn {
      unsafe posix_spawnp(
        &child, arguments[0], &actions, &attributes, &argumentPointers, &environmentPointers)
    }
  }

  /// Writes the payload, until the command closes its input or ends.
  ///
  /// A command does not have to read the whole payload: only its exit code counts. A process that
  /// it leaves behind can keep the full pipe open, so the end of the command also ends the write.
  private static func write(_ input: [UInt8], to descriptor: Int32, of child: pid_t) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    var rest = input[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
      }
      if count < 0 && errno == EINTR { continue }
      if count < 0 && errno == EAGAIN {
        if hasEnded(child) { return }
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        unsafe poll(&entry, 1, endLookMilliseconds)
        continue
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Whether the command has ended.
  ///
  /// It does not reap the process.
  private static func hasEnded(_ child: pid_t) -> Bool {
    var information = unsafe siginfo_t()
    return unsafe waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT | WNOHANG) == 0
      && information.si_signo == SIGCHLD
  }

  private static func failure(_ what: String, _ number: Int32) -> String {
    "\(what): \(unsafe String(cString: strerror(number)))"
  }
}

/// Kills a process group after a time limit, unless it is stopped before.
private final class Killer: Sendable {
  private enum State { case armed, stopped, killed }

  private let state = Mutex(State.armed)

  init(of group: pid_t, after limit: Duration) {
    DispatchQueue.global().asyncAfter(deadline: .now() + limit / .seconds(1)) { [weak self] in
      self?.state.withLock { state in
        guard state == .armed else { return }
        state = .killed
        kill(-group, SIGKILL)
      }
    }
  }

  /// Cancels the kill.
  ///
  /// - Returns: whether the process group was already killed.
  func stop() -> Bool {
    state.withLock { state in
      defer { if state == .armed { state = .stopped } }
      return state == .killed
    }
  }
}
