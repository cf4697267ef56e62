internal import Replication
internal import Synchronization

/// Callers that wait until a record of this process is applied here.
final class PendingResults<Value: Sendable>: Sendable {
  private enum Entry {
    case expected
    case waiting([Waiter])
    case done(Value)
  }

  private struct Waiter {
    let id: UInt64
    let continuation: CheckedContinuation<Value?, Never>
    let until: Duration
  }

  private struct State {
    var entries: [RecordNumber: Entry] = [:]
    /// Results that no caller has asked for yet, the oldest first.
    var unclaimed: ArraySlice<RecordNumber> = []
    var lastWaiter: UInt64 = 0
    var isClosed = false
  }

  /// How many results wait to be asked for: who writes a record asks as soon as it is on the disk.
  private static var mostUnclaimed: Int { 100_000 }

  private let state = Mutex(State())
  private let now: @Sendable () -> Duration

  /// - Parameter now: the clock of all times here.
  init(now: @escaping @Sendable () -> Duration) { self.now = now }

  /// Notes that somebody will ask for the result of a record, after the commit that wrote it.
  func expect(_ name: RecordNumber) {
    state.withLock { $0.entries[name] = .expected }
  }

  /// Waits for a result.
  ///
  /// - Parameter until: a caller does not wait after this time.
  /// - Returns: nil if it does not come in this time, if the caller's task is cancelled, or never: the node has
  ///   stopped.
  func result(of name: RecordNumber, until: Duration) async -> Value? {
    let id = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waiter = Waiter(id: id, continuation: continuation, until: until)
        let found = state.withLock { state -> Value?? in
          // The handler can have run before the waiter is here.
          let waits = until > now() && !state.isClosed && !Task.isCancelled
          switch state.entries[name] {
          case .done(let value):
            state.entries[name] = nil
            return .some(value)
          case .waiting(let others) where waits:
            state.entries[name] = .waiting(others + [waiter])
          case .expected where waits: state.entries[name] = .waiting([waiter])
          case .expected:
            state.entries[name] = nil
            return .some(nil)
          case .waiting, nil: return .some(nil)
          }
          return nil
        }
        if let found { continuation.resume(returning: found) }
      }
    } onCancel: {
      end { $0.id == id }
    }
  }

  /// A record was applied.
  func resolve(_ name: RecordNumber, _ value: Value) {
    let waiters = state.withLock { state -> [Waiter] in
      switch state.entries[name] {
      case .waiting(let waiters):
        state.entries[name] = nil
        return waiters
      case .expected:
        state.entries[name] = .done(value)
        state.unclaimed.append(name)
        if state.unclaimed.count > Self.mostUnclaimed, let oldest = state.unclaimed.popFirst(),
          case .done = state.entries[oldest]
        {
          state.entries[oldest] = nil
        }
      case .done, nil: break
      }
      return []
    }
    for waiter in waiters { waiter.continuation.resume(returning: value) }
  }

  /// Records have got new names.
  func rename(_ names: [RecordNumber: RecordNumber]) {
    state.withLock { state in
      for (old, new) in names {
        if let entry = state.entries.removeValue(forKey: old) { state.entries[new] = entry }
      }
    }
  }

  /// Lets those return that have waited long enough.
  func expire() {
    let now = now()
    end { $0.until <= now }
  }

  private func end(_ isOver: (Waiter) -> Bool) {
    let ended = state.withLock { state in
      var ended: [Waiter] = []
      for case (let name, .waiting(let waiters)) in state.entries {
        let rest = waiters.filter { !isOver($0) }
        if rest.count == waiters.count { continue }
        ended += waiters.filter(isOver)
        // Its result is dropped if no caller waits any more.
        state.entries[name] = rest.isEmpty ? nil : .waiting(rest)
      }
      return ended
    }
    for waiter in ended { waiter.continuation.resume(returning: nil) }
  }

  /// No result comes any more.
  func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      defer { state.entries = [:] }
      return state.entries.values.flatMap { entry -> [Waiter] in
        if case .waiting(let waiters) = entry { waiters } else { [] }
      }
    }
    for waiter in waiters { waiter.continuation.resume(returning: nil) }
  }
}
