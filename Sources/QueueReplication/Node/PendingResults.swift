internal import Replication
internal import Synchronization

/// Callers that wait until a record of this process is applied here.
final class PendingResults<Value: Sendable>: Sendable {
  private struct Entry {
    /// Callers that will ask.
    var callers = 0
    var waiters: [Waiter] = []
    /// The result, once it is known; kept for those that will ask.
    var value: Value?

    var isOver: Bool { callers <= 0 && waiters.isEmpty }
  }

  private struct Waiter {
    let id: UInt64
    let continuation: CheckedContinuation<Value?, Never>
    let until: Duration
  }

  private struct State {
    var entries: [RecordNumber: Entry] = [:]
    /// Results that not all callers have asked for yet, the oldest first.
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

  /// Notes that callers will ask for the result of a record, after the commit that wrote it.
  ///
  /// - Parameter callers: default: 1.
  func expect(_ name: RecordNumber, by callers: Int = 1) {
    state.withLock { $0.entries[name] = Entry(callers: callers) }
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
          guard var entry = state.entries[name] else { return .some(nil) }
          entry.callers -= 1
          if waits, entry.value == nil { entry.waiters.append(waiter) }
          state.entries[name] = entry.isOver ? nil : entry
          return waits && entry.value == nil ? nil : .some(entry.value)
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
      guard let entry = state.entries.removeValue(forKey: name) else { return [] }
      if entry.callers > 0 {
        state.entries[name] = Entry(callers: entry.callers, value: value)
        state.unclaimed.append(name)
        if state.unclaimed.count > Self.mostUnclaimed, let oldest = state.unclaimed.popFirst(),
          state.entries[oldest]?.value != nil
        {
          state.entries[oldest] = nil
        }
      }
      return entry.waiters
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

  /// Lets all return that wait now.
  func endAll() { end { _ in true } }

  private func end(_ isOver: (Waiter) -> Bool) {
    let ended = state.withLock { state in
      var ended: [Waiter] = []
      for (name, var entry) in state.entries {
        let over = entry.waiters.filter(isOver)
        if over.isEmpty { continue }
        ended += over
        entry.waiters.removeAll(where: isOver)
        state.entries[name] = entry.isOver ? nil : entry
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
      return state.entries.values.flatMap(\.waiters)
    }
    for waiter in waiters { waiter.continuation.resume(returning: nil) }
  }
}
