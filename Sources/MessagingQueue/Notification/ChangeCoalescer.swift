/// Decides when a notification is due: events in, one action out, without a clock or a database.
///
/// The first event starts a timer; each further one restarts it. So a burst gives one notification
/// after its end, but never later than the maximum latency after its first event. All times are of
/// one clock that does not jump.
package struct ChangeCoalescer: ~Copyable {
  /// The caller's next step.
  package enum Action: Sendable, Hashable {
    /// Wait for an event, without a limit.
    case waitForEvent
    /// Wait for an event, until this time at most.
    case waitForEventOrTime(Duration)
    /// Send a notification of everything since the last one.
    case tell
  }

  private let delay: Duration
  private let maximumLatency: Duration
  /// The times of the first event and of the notification; nil before an event.
  private var timer: (first: Duration, due: Duration)?

  /// - Parameters:
  ///   - delay: the time without an event after which the notification is due.
  ///   - maximumLatency: the longest time from the first event to the notification. A value below
  ///     `delay` counts as `delay`.
  package init(delay: Duration, maximumLatency: Duration) {
    self.delay = delay
    self.maximumLatency = max(delay, maximumLatency)
  }

  /// Something changed, or possibly changed.
  package mutating func changed(at now: Duration) -> Action {
    // The caller is late: the overdue notification comes first, and covers this event too.
    if let timer, now >= timer.due { return time(now) }
    let first = timer?.first ?? now
    let due = min(now + delay, first + maximumLatency)
    timer = (first, due)
    return due <= now ? time(now) : .waitForEventOrTime(due)
  }

  /// The clock has reached this time; whether something changed is unknown.
  package mutating func time(_ now: Duration) -> Action {
    guard let timer else { return .waitForEvent }
    if now < timer.due { return .waitForEventOrTime(timer.due) }
    self.timer = nil
    return .tell
  }
}
