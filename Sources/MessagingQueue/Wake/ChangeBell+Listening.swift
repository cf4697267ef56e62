internal import Foundation
internal import Synchronization

/// What the bell's thread sees of the database: when it differs, somebody committed.
package struct BellProbe: Sendable, Hashable {
  let commitNumber: Int64
  let isLockedOut: Bool

  package init(commitNumber: Int64, isLockedOut: Bool = false) {
    self.commitNumber = commitNumber
    self.isLockedOut = isLockedOut
  }
}

extension ChangeBell {
  /// Starts the thread with the first waiter, or wakes it if it has gone to sleep.
  func ensureListening() {
    guard device != nil else { return }
    let (starts, sleeper) = state.withLock { state in
      defer {
        state.hasThread = true
        state.isThreadAsleep = false
      }
      return (!state.hasThread, state.isThreadAsleep ? state.listener : nil)
    }
    sleeper?.interrupt()
    guard starts else { return }
    // The thread holds the bell between two waits only: an engine that is dropped ends it.
    let thread = Thread { [weak self] in
      var rounds = Rounds()
      while let wait = self?.prepare(&rounds) {
        let event = wait.listener.wait(upTo: wait.limit)
        guard let self, self.heard(event, &rounds) else { return }
      }
    }
    thread.name = "datavault.bell"
    thread.start()
  }

  /// What the thread remembers from one wait to the next.
  struct Rounds {
    var listener: (any BellListener)?
    var isDeaf = false
    var seen: BellProbe?
  }

  struct Wait {
    let listener: any BellListener
    let limit: Duration?
  }

  /// Listens, if it does not already, and says for how long; nil when the engine has stopped.
  func prepare(_ rounds: inout Rounds) -> Wait? {
    let listener = rounds.listener ?? listen(&rounds)
    let limit = rounds.isDeaf ? intervals.deaf : intervals.listening
    return state.withLock { state in
      if state.isStopped { return nil }
      state.listener = listener
      return Wait(listener: listener, limit: state.isThreadAsleep ? nil : limit)
    }
  }

  private func listen(_ rounds: inout Rounds) -> any BellListener {
    do {
      guard let device else { throw BellError("there is no device") }
      rounds.listener = try device.listen()
      rounds.isDeaf = false
    } catch {
      rounds.listener = PollingListener()
      rounds.isDeaf = true
    }
    let listener = rounds.listener ?? PollingListener()
    // Whoever rang before now was not heard.
    rounds.seen = probe()
    wake(in: nil)
    return listener
  }

  /// Acts on what the wait ended with; false when the engine has stopped.
  func heard(_ event: BellEvent, _ rounds: inout Rounds) -> Bool {
    switch event {
    case .rang:
      wake(in: nil)
    case .lost:
      rounds.listener = nil
    case .interrupted:
      break
    case .timedOut:
      look(&rounds)
      // The reason for the refusal may have gone.
      if rounds.isDeaf { tryAgain(&rounds) }
    }
    return state.withLock { state in
      if event == .timedOut { state.isThreadAsleep = state.waiters.isEmpty }
      return !state.isStopped
    }
  }

  private func look(_ rounds: inout Rounds) {
    guard let now = probe(), now != rounds.seen else { return }
    rounds.seen = now
    wake(in: nil)
  }

  private func tryAgain(_ rounds: inout Rounds) {
    guard let listener = try? device?.listen() else { return }
    rounds.listener = listener
    rounds.isDeaf = false
    look(&rounds)
  }
}
