/// The states of an engine, from its start to its end: event in, action out.
///
/// This type does no I/O and never waits; the caller carries out the action that it returns. Three
/// rules hold: an engine takes work only in the state `running`, whatever was opened is closed
/// exactly once, and the end is announced only after that.
package struct EngineStateMachine: Sendable, Hashable {
  /// An event of an engine.
  package enum Event: Sendable, Hashable {
    /// The caller wants the engine to run.
    case start
    /// The vault and the database are open.
    case opened
    /// The vault or the database could not be opened, and nothing is open.
    case failed(EngineError.Code)
    /// The caller wants the engine to end.
    case stop
    /// The engine must end, for this reason.
    case forcedStop(EngineError.Code)
    /// The engine's work is finished and its database is closed.
    case closed
  }

  /// The caller's next step.
  package enum Action: Sendable, Hashable {
    case nothing
    /// Open the vault and the database; then report `opened` or `failed`.
    case open
    /// Give up opening; then still report `opened` or `failed`.
    case abandonOpening
    /// Finish the work, record the anchor and close the database; then report `closed`.
    case closeDown
    /// Wait for the end that is under way.
    case awaitEnd
    /// Wake everyone who waits for the end.
    case announceEnd
  }

  /// The current state.
  package private(set) var state = EngineState.stopped

  /// The state that follows `stopping`.
  private(set) var end = EngineState.stopped

  package init() {}

  /// Handles an event; an event that is impossible in this state changes nothing.
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

  /// Why the engine takes no work; nil while it runs.
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

/// The state of an engine, from its start to its end.
public enum EngineState: Sendable, Hashable {
  /// The engine was never started, or has stopped in good order.
  case stopped
  /// The engine opens the vault and the database, or waits for an unlock of the vault.
  case starting
  /// The engine takes work.
  case running
  /// The engine finishes its work and takes no more.
  case stopping
  /// The engine does not run, for this reason: a start failed, or the vault was locked.
  case refused(EngineError.Code)
}
