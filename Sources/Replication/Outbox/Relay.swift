/// Decides what is appended to the log, and when again: one for each database.
///
/// The log skips what is not its author's next record. So it sends each author's records in order, a window of them
/// at a time, and again from the first one that is not applied, when it learns of a gap, or has read the log up to a time
/// by which it must have them. It needs no answer of the broker: only what is read back counts. A node that cannot read or
/// apply the log sends nothing again: it would fill the log of all.
package struct Relay: Sendable {
  package struct Limits: Sendable, Hashable {
    /// Records of one author that are under way at a time.
    package var window = 64
    /// How long after it was sent the log can lack a record that is on its way.
    ///
    /// Default: 2 s.
    package var patience: Duration = .seconds(2)
    /// How long it ignores further gaps after it has begun again.
    package var gapPause: Duration = .milliseconds(200)

    package init() {}
  }

  private struct Progress: Sendable {
    var sentThrough: UInt64 = 0
    var since: Duration
  }

  /// Whether the outbox can have more to append than was given out last.
  package private(set) var hasMore = true
  private let limits: Limits
  private var progress: [AuthorID: Progress] = [:]

  package init(_ limits: Limits = Limits()) { self.limits = limits }

  /// The records to append now, each author's in order.
  ///
  /// - Parameter horizon: up to when the node knows the log.
  package mutating func next(
    _ outbox: some OutboxRows, _ horizon: ReadHorizon, _ now: Duration
  ) throws -> [SealedRecord] {
    hasMore = false
    var records: [SealedRecord] = []
    var known: [AuthorID: Progress] = [:]
    for author in try outbox.authors {
      var state = progress[author] ?? Progress(since: now)
      // Numbers have no gaps, so those from the first one on are under way.
      let first = try outbox.firstNumber(of: author) ?? 1
      let isMissing = horizon.time.map { $0 - state.since >= limits.patience } ?? false
      if isMissing || state.sentThrough < first { state = Progress(since: now) }
      let sent = state.sentThrough >= first ? Int(state.sentThrough - first + 1) : 0
      let room = max(0, limits.window - sent)
      let fresh = try outbox.records(of: author, after: state.sentThrough, most: room)
      if fresh.count == room { hasMore = true }
      if let last = fresh.last {
        state.sentThrough = last.name.number
        records += fresh
      }
      known[author] = state
    }
    progress = known
    return records
  }

  /// A record of this author was applied.
  package mutating func noteApplied(_ name: RecordNumber, _ now: Duration) {
    progress[name.author]?.since = now
  }

  /// A record of this author was skipped, because one before it is not in the log.
  package mutating func noteGap(_ name: RecordNumber, _ now: Duration) {
    guard let state = progress[name.author], now - state.since >= limits.gapPause else { return }
    hasMore = true
    progress[name.author] = Progress(since: now)
  }

  /// Records have come back into the outbox: their authors' records are sent again from the first.
  package mutating func noteReturned() {
    hasMore = true
    progress = [:]
  }
}
