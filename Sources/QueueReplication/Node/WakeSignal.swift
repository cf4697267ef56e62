internal import Synchronization

/// Wakes one loop: a signal that comes while it works is not lost.
final class WakeSignal: Sendable {
  private struct State {
    var isSet = false
    var isDelayed = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func set() {
    state.withLock { state in
      state.isSet = state.waiter == nil
      return state.waiter.take()
    }?.resume()
  }

  /// Signals after a while; further calls in this time do nothing.
  func set(after delay: Duration) {
    let isFirst = state.withLock { state in
      defer { state.isDelayed = true }
      return !state.isDelayed
    }
    guard isFirst else { return }
    Task {
      try? await Task.sleep(for: delay)
      state.withLock { $0.isDelayed = false }
      set()
    }
  }

  /// Returns after the next signal, or one that has come since the last wait, or if the task is cancelled.
  func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isSet = state.withLock { state in
          if !state.isSet { state.waiter = continuation }
          defer { state.isSet = false }
          return state.isSet
        }
        if isSet { continuation.resume() }
      }
    } onCancel: {
      set()
    }
  }
}
