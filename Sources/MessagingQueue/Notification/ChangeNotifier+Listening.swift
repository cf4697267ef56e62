internal import Foundation
internal import Synchronization

/// The values that the notifier's thread reads from the database; they differ after every commit.
package struct DatabaseProbe: Sendable, Hashable {
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
      var rounds = Rounds()
      while let wait = self?.prepare(&rounds) {
        let event = wait.listener.wait(upTo: wait.limit)
        guard let self, self.heard(event, &rounds) else { return }
      }
    }
    thread.name = "datavault.notifications"
    thread.start()
  }

  /// The thread's state between two waits.
  private struct Rounds {
    var listener: (any NotificationListener)?
    var seen: DatabaseProbe?

    var isPolling: Bool { listener is PollingListener }
  }

  /// Returns a listener and how long to wait on it; nil after the engine has stopped.
  private func prepare(
    _ rounds: inout Rounds
  ) -> (listener: any NotificationListener, limit: Duration?)? {
    let listener = rounds.listener ?? listen(&rounds)
    let limit = rounds.isPolling ? intervals.polling : intervals.fallbackCheck
    return state.withLock { state in
      if state.isStopped { return nil }
      state.listener = listener
      return (listener, state.isThreadAsleep ? nil : limit)
    }
  }

  private func listen(_ rounds: inout Rounds) -> any NotificationListener {
    let listener = (try? transport?.listen()) ?? PollingListener()
    rounds.listener = listener
    // Notifications before this moment are lost, so the waiters read the database again.
    rounds.seen = probe()
    wake(in: nil)
    return listener
  }

  /// Handles the end of a wait; false after the engine has stopped.
  private func heard(_ event: NotificationEvent, _ rounds: inout Rounds) -> Bool {
    switch event {
    case .changed:
      wake(in: nil)
    case .lost:
      rounds.listener = nil
    case .interrupted:
      break
    case .timedOut:
      wakeIfDatabaseChanged(&rounds)
      // The system can allow now what it refused before.
      if rounds.isPolling, let listener = try? transport?.listen() {
        rounds.listener = listener
        wakeIfDatabaseChanged(&rounds)
      }
    }
    return state.withLock { state in
      if event == .timedOut { state.isThreadAsleep = state.waiters.isEmpty }
      return !state.isStopped
    }
  }

  private func wakeIfDatabaseChanged(_ rounds: inout Rounds) {
    guard let now = probe(), now != rounds.seen else { return }
    rounds.seen = now
    wake(in: nil)
  }
}
