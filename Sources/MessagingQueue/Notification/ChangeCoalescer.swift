/// Decides when changes are told: events in, one action out, no clock and no database.
///
/// The first event arms a timer; each further one puts it off, so that a burst is told once it is
/// over, but never beyond the longest latency from the first on. All times are those of one clock
/// that does not jump.
package struct ChangeCoalescer: ~Copyable {
  /// What to do.
  package enum Action: Sendable, Hashable {
    /// Wait for an event, for as long as it takes.
    case waitForEvent
    /// Wait for an event, until this time at most.
    case waitForEventOrTime(Duration)
    /// Tell of everything since the last time.
    case tell
  }

  private enum State {
    case idle
    case armed(first: Duration, due: Duration)
  }

  private let delay: Duration
  private let maximumLatency: Duration
  private var state = State.idle

  /// - Parameters:
  ///   - delay: how long it has to be quiet.
  ///   - maximumLatency: how long the first event waits at most; no less than `delay`.
  package init(delay: Duration, maximumLatency: Duration) {
    self.delay = delay
    self.maximumLatency = max(delay, maximumLatency)
  }

  /// Something changed, or may have.
  package mutating func changed(at now: Duration) -> Action {
    let first: Duration
    switch state {
    case .idle: first = now
    case .armed(let earlier, let due):
      // Who comes back late tells first what is overdue.
      if now >= due { return time(now) }
      first = earlier
    }
    let due = min(now + delay, first + maximumLatency)
    state = .armed(first: first, due: due)
    return due <= now ? time(now) : .waitForEventOrTime(due)
  }

  /// It has become this time; nothing is said about changes.
  package mutating func time(_ now: Duration) -> Action {
    switch state {
    case .idle:
      return .waitForEvent
    case .armed(_, let due) where now >= due:
      state = .idle
      return .tell
    case .armed(_, let due):
      return .waitForEventOrTime(due)
    }
  }
}
