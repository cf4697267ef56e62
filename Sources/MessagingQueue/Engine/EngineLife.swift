/// The life of an engine as a machine: event in, action out.
///
/// Nothing here waits, opens or closes anything; ``LifeKeeper`` does, as it is told. The rule behind the
/// table: work is taken in the state `running` alone, whatever was opened is closed exactly once, and
/// nobody is told of the end before that.
package struct EngineLife: Sendable, Hashable {
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
    case shutOut(EngineError.Code)
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
    case (.starting, .shutOut(let code)): leave(for: .refused(code), .abandonOpening)

    case (.running, .stop): leave(for: .stopped, .closeDown)
    case (.running, .shutOut(let code)): leave(for: .refused(code), .closeDown)

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
