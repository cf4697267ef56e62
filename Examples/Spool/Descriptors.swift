internal import Glibc
internal import Synchronization

/// Makes descriptors that no command inherits.
///
/// The close-on-exec flag is set after the descriptor is made. A lock ensures that no command
/// starts in between.
enum Descriptors {
  private static let starting = Mutex(())

  /// Starts a command under the lock.
  static func spawn(_ body: () -> Int32) -> Int32 { starting.withLock { _ in body() } }

  /// Waits for a client and accepts it; negative, with `errno`, on an error.
  static func accept(on listener: Int32) -> Int32 {
    var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
    if unsafe poll(&entry, 1, -1) < 0 { return -1 }
    return starting.withLock { _ in
      let client = Glibc.accept(listener, nil, nil)
      if client >= 0 { closeOnExec(client) }
      return client
    }
  }

  /// Makes a pipe and returns its ends; nil, with `errno`, on an error.
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
