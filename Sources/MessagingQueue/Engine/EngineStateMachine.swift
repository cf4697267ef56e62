package import Logging
internal import Synchronization

/// The life of an engine as a machine: event in, action out.
///
/// Nothing here waits, opens or closes anything; ``EngineStateStore`` does, as it is told. The rule behind the
/// table: work is taken in the state `running` alone, whatever was opened is closed exactly once, and
/// nobody is told of the end before that.
package struct EngineStateMachine: Sendable, Hashable {
  /// What has happened.
  package enum Event: Sendable, Hashable {
    /// Somebody wants it to run.
    case start
    /// Vault and database are open.
    case opened
    /// They could not be opened, and nothing is open.
    case failed(EngineError.Code)
    /// Somebody wants it to end.
    case stop
    /// It must end, and this is why.
    case forcedStop(EngineError.Code)
    /// Its work is finished and its database closed.
    case closed
  }

  /// What is to be done about it.
  package enum Action: Sendable, Hashable {
    case nothing
    /// Open vault and database; report `opened` or `failed`.
    case open
    /// Give up opening; `opened` or `failed` will be reported all the same.
    case abandonOpening
    /// Finish the work, record the anchor, close the database; report `closed`.
    case closeDown
    /// Wait for the end that is under way.
    case awaitEnd
    /// Tell everybody who waits for the end.
    case announceEnd
  }

  /// The state, as the world sees it.
  package private(set) var state = EngineState.stopped

  /// What comes after `stopping`.
  private(set) var end = EngineState.stopped

  package init() {}

  /// Takes in an event; one that cannot happen in this state changes nothing.
  package mutating func handle(_ event: Event) -> Action {
    switch (state, event) {
    case (.stopped, .start), (.refused, .start): enter(.starting, .open)

    case (.starting, .opened): enter(.running, .nothing)
    case (.starting, .failed(let code)): enter(.refused(code), .announceEnd)
    case (.starting, .stop): leave(for: .stopped, .abandonOpening)
    case (.starting, .forcedStop(let code)): leave(for: .refused(code), .abandonOpening)

    case (.running, .stop): leave(for: .stopped, .closeDown)
    case (.running, .forcedStop(let code)): leave(for: .refused(code), .closeDown)

    case (.stopping, .opened): .closeDown
    case (.stopping, .failed), (.stopping, .closed): enter(end, .announceEnd)
    case (.stopping, .stop): .awaitEnd

    case (.refused, .stop): enter(.stopped, .nothing)

    default: .nothing
    }
  }

  /// Why no work is taken; nil while it is.
  package var refusal: EngineError.Code? {
    switch state == .stopping ? end : state {
    case .running: nil
    case .refused(let code): code
    case .stopped, .starting, .stopping: .stopped
    }
  }

  private mutating func enter(_ next: EngineState, _ action: Action) -> Action {
    state = next
    return action
  }

  private mutating func leave(for end: EngineState, _ action: Action) -> Action {
    self.end = end
    return enter(.stopping, action)
  }
}

/// Where in its life an engine is.
public enum EngineState: Sendable, Hashable {
  /// It has not been started, or has ended in good order.
  case stopped
  /// It opens the vault and the database, or waits for somebody to unlock the vault.
  case starting
  /// It takes work.
  case running
  /// It takes no more work and is finishing what it has.
  case stopping
  /// It does not run, for the reason given: a start failed, or the vault was locked.
  case refused(EngineError.Code)
}

/// Keeps an engine's ``EngineStateMachine`` and tells of its changes.
package final class EngineStateStore: Sendable {
  private struct Kept {
    var life = EngineStateMachine()
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
  convenience init(_ events: EngineStateMachine.Event...) {
    self.init()
    for event in events { _ = handle(event) }
  }

  package var state: EngineState { kept.withLock { $0.life.state } }

  /// Why no work is taken; nil while it is.
  package var refusal: EngineError.Code? { kept.withLock { $0.life.refusal } }

  /// Takes in an event, tells whom it concerns, and returns what the caller is to do about it.
  package func handle(_ event: EngineStateMachine.Event) -> EngineStateMachine.Action {
    let (action, state) = kept.withLock { kept -> (EngineStateMachine.Action, EngineState?) in
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

extension EngineState {
  /// At which level it is logged that an engine has come to this state.
  ///
  /// A refusal that a caller is told of is no warning; one that comes from outside nobody else tells.
  var logLevel: Logger.Level {
    switch self {
    case .starting, .stopping: .debug
    case .running, .stopped: .info
    case .refused: .notice
    }
  }

  /// The line that is logged; there is never anything but the state in it.
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
