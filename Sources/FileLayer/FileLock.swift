internal import Glibc
internal import Synchronization
package import SystemPackage

/// An exclusive lock, held until ``release()`` or until the object is released.
package final class FileLock: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>

  package init(_ body: @escaping @Sendable () -> Void) {
    self.body = Mutex(body)
  }

  /// Releases the lock; a second call does nothing.
  package func release() {
    body.withLock { $0.take() }?()
  }

  deinit {
    release()
  }
}

extension FileSystem {
  /// Creates a missing lock file for the owner of its directory.
  ///
  /// A lock file of root would lock a daemon out of its own vault.
  package func makeLockFile(_ path: FilePath) throws(FileError) {
    guard let owner = try ownerOfNewFile(in: path.containingDirectory),
      try status(of: path) == nil
    else { return }
    do throws(FileError) {
      // The file gets its name after its owner, because root can be killed in between.
      try make(path, with: [], owner: owner)
    } catch {
      guard !error.isCrash, try status(of: path) != nil else { throw error }
      // Another process was faster.
    }
  }

  /// Takes the lock of ``lock(_:wait:)`` and waits for it for a limited time.
  ///
  /// flock(2) has no timeout, so this polls: after 1 ms first, then at intervals of up to 16 ms.
  ///
  /// - Returns: nil if another holder still has the lock after that time.
  package func lock(_ path: FilePath, busyTimeout: Duration) throws(FileError) -> FileLock? {
    let deadline = ContinuousClock.now + busyTimeout
    var pause = Duration.milliseconds(1)
    while true {
      if let lock = try lock(path, wait: false) { return lock }
      let remaining = deadline - ContinuousClock.now
      guard remaining > .zero else { return nil }
      var time = timespec()
      time.tv_nsec = Int(min(pause, remaining).wholeNanoseconds)
      unsafe nanosleep(&time, nil)
      pause = min(pause * 2, .milliseconds(16))
    }
  }
}
