internal import Synchronization

/// The task that waits for a vault's lock timeout; it ends with its owner.
final class ExpiryTask: Sendable {
  private let task = Mutex<Task<Void, Never>?>(nil)

  /// Takes the place of the one before, which ends.
  func set(_ next: Task<Void, Never>?) {
    let previous = task.withLock { task in
      defer { task = next }
      return task
    }
    previous?.cancel()
  }

  deinit {
    set(nil)
  }
}
