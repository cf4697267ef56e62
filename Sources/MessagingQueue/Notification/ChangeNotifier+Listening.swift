internal import Foundation
internal import Synchronization

/// What the notifier's thread reads from the database; it differs after every commit.
package struct DatabaseMark: Sendable, Hashable {
  let commitNumber: Int64
  let isLockedOut: Bool

  package init(commitNumber: Int64, isLockedOut: Bool = false) {
    self.commitNumber = commitNumber
    self.isLockedOut = isLockedOut
  }
}

extension ChangeNotifier {
  /// Starts the thread with the first waiter, or wakes it if it sleeps.
  func ensureListening() {
    guard transport != nil else { return }
    let (starts, sleeper) = state.withLock { state in
      defer {
        state.hasThread = true
        state.isThreadAsleep = false
      }
      return (!state.hasThread, state.isThreadAsleep ? state.listener : nil)
    }
    sleeper?.interrupt()
    guard starts else { return }
    // The thread holds the notifier only between two waits. So the engine can be released, and the
    // thread then ends.
    let thread = Thread { [weak self] in
      var ownState = ThreadState()
      while let wait = self?.nextWait(&ownState) {
        let event = wait.listener.wait(upTo: wait.limit)
        guard let self, self.handle(event, &ownState) else { return }
      }
    }
    thread.name = "datavault.notifications"
    thread.start()
  }

  /// The thread's state between two waits.
  private struct ThreadState {
    var listener: (any NotificationListener)?

    var isPolling: Bool { listener is PollingListener }
  }

  /// Returns a listener and how long to wait on it; nil after the engine has stopped.
  private func nextWait(
    _ thread: inout ThreadState
  ) -> (listener: any NotificationListener, limit: Duration?)? {
    let listener = thread.listener ?? listen(&thread)
    let limit = thread.isPolling ? intervals.polling : intervals.fallbackCheck
    return state.withLock { state in
      if state.isStopped { return nil }
      state.listener = listener
      return (listener, state.isThreadAsleep ? nil : limit)
    }
  }

  private func listen(_ thread: inout ThreadState) -> any NotificationListener {
    let listener = (try? transport?.listen()) ?? PollingListener()
    thread.listener = listener
    // Notifications before this moment are lost, so the waiters read the database again.
    let mark = probe()
    state.withLock { $0.seen = mark }
    wake(in: nil)
    return listener
  }

  /// Handles the end of a wait; false after the engine has stopped.
  private func handle(_ event: NotificationEvent, _ thread: inout ThreadState) -> Bool {
    switch event {
    case .changed:
      wakeIfDatabaseChanged(wakesIfUnknown: true)
    case .lost:
      thread.listener = nil
    case .interrupted:
      break
    case .timedOut:
      wakeIfDatabaseChanged()
      // The system can allow now what it refused before.
      if thread.isPolling, let listener = try? transport?.listen() {
        thread.listener = listener
        wakeIfDatabaseChanged()
      }
    }
    return state.withLock { state in
      if event == .timedOut { state.isThreadAsleep = state.waiters.isEmpty }
      return !state.isStopped
    }
  }

  /// Wakes all waiters if there was a commit for which they were not woken.
  ///
  /// - Parameter wakesIfUnknown: whether it also wakes them if the database cannot be read.
  private func wakeIfDatabaseChanged(wakesIfUnknown: Bool = false) {
    guard let mark = probe() else {
      if wakesIfUnknown { wake(in: nil) }
      return
    }
    let isNew = state.withLock { state in
      // An own commit can have been noted since the database was read.
      if let seen = state.seen, mark.isLockedOut == seen.isLockedOut,
        mark.commitNumber <= seen.commitNumber
      {
        return false
      }
      state.seen = mark
      return true
    }
    if isNew { wake(in: nil) }
  }

  /// Notes a commit of this engine, whose notification then wakes no waiter a second time.
  ///
  /// If another commit came before it, for which waiters were not woken yet, the notification wakes all.
  func noteOwnCommit(_ number: Int64) {
    state.withLock { state in
      guard let seen = state.seen, number == seen.commitNumber + 1 else { return }
      state.seen = DatabaseMark(commitNumber: number, isLockedOut: seen.isLockedOut)
    }
  }
}
