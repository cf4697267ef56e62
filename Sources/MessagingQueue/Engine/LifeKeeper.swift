package import Logging
internal import Synchronization

/// Keeps an engine's ``EngineLife`` and tells of its changes.
package final class LifeKeeper: Sendable {
  private struct Kept {
    var life = EngineLife()
    var endWaiters: [CheckedContinuation<Void, Never>] = []
    var observers: [UInt64: AsyncStream<EngineState>.Continuation] = [:]
    var nextNumber: UInt64 = 0
  }

  private let kept = Mutex(Kept())
  private let logger: Logger?

  /// - Parameter logger: told of each state; nil for nobody.
  package init(logger: Logger? = nil) {
    self.logger = logger
  }

  /// One that has come to where these events lead.
  convenience init(_ events: EngineLife.Event...) {
    self.init()
    for event in events { _ = handle(event) }
  }

  package var state: EngineState { kept.withLock { $0.life.state } }

  /// Why no work is taken; nil while it is.
  package var refusal: EngineError.Code? { kept.withLock { $0.life.refusal } }

  /// Takes in an event, tells whom it concerns, and returns what the caller is to do about it.
  package func handle(_ event: EngineLife.Event) -> EngineLife.Action {
    let (action, state) = kept.withLock { kept -> (EngineLife.Action, EngineState?) in
      let before = kept.life.state
      let action = kept.life.handle(event)
      // In the lock, so that everybody sees the states in the order in which they came.
      if kept.life.state != before {
        for observer in kept.observers.values { observer.yield(kept.life.state) }
      }
      if action == .announceEnd {
        for waiter in kept.endWaiters { waiter.resume() }
        kept.endWaiters = []
      }
      return (action, kept.life.state == before ? nil : kept.life.state)
    }
    // Outside the lock: a log may ask for the state.
    if let state { logger?.log(level: state.logLevel, state.logLine) }
    return action
  }

  /// Returns when `stopping` is over; at once in any other state.
  package func awaitEnd() async {
    await withCheckedContinuation { waiter in
      let isOver = kept.withLock { kept in
        if kept.life.state != .stopping { return true }
        kept.endWaiters.append(waiter)
        return false
      }
      if isOver { waiter.resume() }
    }
  }

  /// The state now and every one after it, until the reader or this object goes.
  package var states: AsyncStream<EngineState> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: EngineState.self, bufferingPolicy: .bufferingNewest(16))
    let number = kept.withLock { kept in
      kept.nextNumber += 1
      kept.observers[kept.nextNumber] = continuation
      continuation.yield(kept.life.state)
      return kept.nextNumber
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.kept.withLock { $0.observers.removeValue(forKey: number) }
    }
    return stream
  }

  deinit {
    // Outside the lock: ending a stream calls back.
    let observers = kept.withLock { kept in
      defer { kept.observers = [:] }
      return Array(kept.observers.values)
    }
    for observer in observers { observer.finish() }
  }
}
