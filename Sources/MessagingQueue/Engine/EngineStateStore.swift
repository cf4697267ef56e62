package import Logging
internal import Synchronization

/// Holds an engine's ``EngineStateMachine`` and announces its changes.
package final class EngineStateStore: Sendable {
  private struct Kept {
    var machine = EngineStateMachine()
    var endWaiters: [CheckedContinuation<Void, Never>] = []
    var observers: [UInt64: AsyncStream<EngineState>.Continuation] = [:]
    var nextNumber: UInt64 = 0
  }

  private let kept = Mutex(Kept())
  private let logger: Logger?

  /// - Parameter logger: takes a line for each state; nil for none.
  package init(logger: Logger? = nil) {
    self.logger = logger
  }

  /// A store in the state to which these events lead.
  convenience init(_ events: EngineStateMachine.Event...) {
    self.init()
    for event in events { _ = handle(event) }
  }

  package var state: EngineState { kept.withLock { $0.machine.state } }

  /// Why the engine takes no work; nil while it runs.
  package var refusal: EngineError.Code? { kept.withLock { $0.machine.refusal } }

  /// Handles an event, announces the change, and returns the caller's next step.
  package func handle(_ event: EngineStateMachine.Event) -> EngineStateMachine.Action {
    let (action, state) = kept.withLock { kept -> (EngineStateMachine.Action, EngineState?) in
      let before = kept.machine.state
      let action = kept.machine.handle(event)
      // In the lock, so that every observer sees the states in the same order.
      if kept.machine.state != before {
        for observer in kept.observers.values { observer.yield(kept.machine.state) }
      }
      if action == .announceEnd {
        for waiter in kept.endWaiters { waiter.resume() }
        kept.endWaiters = []
      }
      return (action, kept.machine.state == before ? nil : kept.machine.state)
    }
    // Outside the lock: a log handler can ask for the state.
    if let state { logger?.log(level: state.logLevel, state.logLine) }
    return action
  }

  /// Returns when `stopping` has ended; in any other state it returns immediately.
  package func awaitEnd() async {
    await withCheckedContinuation { waiter in
      let hasEnded = kept.withLock { kept in
        if kept.machine.state != .stopping { return true }
        kept.endWaiters.append(waiter)
        return false
      }
      if hasEnded { waiter.resume() }
    }
  }

  /// The current state and each later one, until the reader or this object is released.
  package var states: AsyncStream<EngineState> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: EngineState.self, bufferingPolicy: .bufferingNewest(16))
    let number = kept.withLock { kept in
      kept.nextNumber += 1
      kept.observers[kept.nextNumber] = continuation
      continuation.yield(kept.machine.state)
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

extension EngineState {
  /// The level at which the engine logs this state.
  ///
  /// A refusal is a notice, not a warning: the caller of a start also gets the error. Only the log
  /// reports a lock from outside.
  var logLevel: Logger.Level {
    switch self {
    case .starting, .stopping: .debug
    case .running, .stopped: .info
    case .refused: .notice
    }
  }

  /// The line that the engine logs; it contains nothing but the state.
  var logLine: Logger.Message {
    switch self {
    case .starting: "the engine is starting"
    case .running: "the engine runs"
    case .stopping: "the engine is stopping"
    case .stopped: "the engine has stopped"
    case .refused(let code): "the engine does not run: \(code)"
    }
  }
}
