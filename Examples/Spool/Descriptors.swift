internal import Glibc
internal import Synchronization

/// Makes descriptors that no command inherits.
///
/// Where the flag comes only after the descriptor, no command may be started between the two.
enum Descriptors {
  private static let starting = Mutex(())

  /// Starts a command.
  static func spawn(_ body: () -> Int32) -> Int32 { starting.withLock { _ in body() } }

  /// Waits for a client and takes it; negative, with `errno`, if there is none.
  static func accept(on listener: Int32) -> Int32 {
    var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
    if unsafe poll(&entry, 1, -1) < 0 { return -1 }
    return starting.withLock { _ in
      let client = Glibc.accept(listener, nil, nil)
      if client >= 0 { closeOnExec(client) }
      return client
    }
  }

  /// A pipe's ends; nil, with `errno`, if there is none to be had.
  static func pipe() -> (reading: Int32, writing: Int32)? {
    starting.withLock { _ in
      var ends: [Int32] = [-1, -1]
      guard unsafe Glibc.pipe(&ends) == 0 else { return nil }
      ends.forEach(closeOnExec)
      return (ends[0], ends[1])
    }
  }

  private static func closeOnExec(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }
}
