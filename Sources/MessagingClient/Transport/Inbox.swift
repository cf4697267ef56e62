internal import DequeModule
internal import Synchronization

/// What a connection has received and its one reader has not taken.
///
/// It holds back the connection, not the event loop: ``put(_:byteCount:)`` says when to stop reading.
final class Inbox<Event: Sendable>: Sendable {
  private struct State {
    var events: Deque<(event: Event, byteCount: Int)> = []
    var byteCount = 0
    var last: Event?
    var isEnded = false
    var isHeld = false
    var reader: CheckedContinuation<Event?, Never>?
    var resume: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())
  private let limit: Int

  /// - Parameter limit: the bytes that wait before the connection is no longer read.
  init(limit: Int = 1 << 20) { self.limit = limit }

  /// What lets the connection read on.
  func whenTaken(_ resume: @escaping @Sendable () -> Void) { state.withLock { $0.resume = resume } }

  /// Adds an event.
  ///
  /// - Returns: false if the connection must not read on.
  func put(_ event: Event, byteCount: Int) -> Bool {
    let (reader, goesOn) = state.withLock { state -> (CheckedContinuation<Event?, Never>?, Bool) in
      guard !state.isEnded else { return (nil, true) }
      if let reader = state.reader {
        state.reader = nil
        return (reader, true)
      }
      state.events.append((event, byteCount))
      state.byteCount += byteCount
      state.isHeld = state.byteCount > limit
      return (nil, !state.isHeld)
    }
    reader?.resume(returning: event)
    return goesOn
  }

  /// Adds the last event, which stays.
  func end(with last: Event) {
    let reader = state.withLock { state in
      guard !state.isEnded else { return nil as CheckedContinuation<Event?, Never>? }
      state.isEnded = true
      state.last = last
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume(returning: last)
  }

  /// What waits, and the last event if there is one; for a fuzzer, which has no tasks.
  func drain() -> [Event] {
    state.withLock { state in
      defer { (state.events, state.byteCount) = ([], 0) }
      return state.events.map(\.event) + (state.last.map { [$0] } ?? [])
    }
  }

  /// The next event, by one task at a time; nil if the task is cancelled.
  func next() async -> Event? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { reader in
        let (event, resume) = state.withLock { state -> (Event??, (@Sendable () -> Void)?) in
          if !state.events.isEmpty {
            let first = state.events.removeFirst()
            state.byteCount -= first.byteCount
            guard state.isHeld, state.byteCount <= limit / 2 else { return (first.event, nil) }
            state.isHeld = false
            return (first.event, state.resume)
          }
          if state.isEnded { return (.some(state.last), nil) }
          if Task.isCancelled { return (.some(nil), nil) }
          state.reader = reader
          return (nil, nil)
        }
        resume?()
        if let event { reader.resume(returning: event) }
      }
    } onCancel: {
      let reader = state.withLock { state in
        defer { state.reader = nil }
        return state.reader
      }
      reader?.resume(returning: nil)
    }
  }
}
