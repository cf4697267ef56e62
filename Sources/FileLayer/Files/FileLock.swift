internal import Synchronization

/// An exclusive lock, held until ``release()`` or until the last reference goes.
package final class FileLock: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>

  package init(_ body: @escaping @Sendable () -> Void) {
    self.body = Mutex(body)
  }

  /// Gives the lock back; a second call does nothing.
  package func release() {
    let body = body.withLock { body in
      defer { body = nil }
      return body
    }
    body?()
  }

  deinit {
    release()
  }
}
