/// Decides what is appended to the log, and when again: one for each database.
///
/// The log skips what is not its author's next record. So it sends each author's records in order, a window of them
/// at a time, and again from the first one that is not applied, when it learns of a gap, or has read the log up to a time
/// by which it must have them. It needs no answer of the broker: only what is read back counts. A node that cannot read or
/// apply the log sends nothing again, except what it failed to send: it would fill the log of all.
package struct Relay: Sendable {
  package struct Limits: Sendable, Hashable {
    /// Records of one author that are under way at a time.
    package var window = 64
    /// How long after it was sent the log can lack a record that is on its way.
    ///
    /// Default: 2 s.
    package var patience: Duration = .seconds(2)
    /// How long after an author's last progress it ignores gaps: records that were sent at the same time can be swapped.
    package var gapPause: Duration = .milliseconds(200)

    package init() {}
  }

  private struct Progress: Sendable {
    var sentThrough: UInt64 = 0
    var since: Duration
    /// Whether it has begun again after a gap, and none of its records was applied since.
    var hasBegunAgain = false
    /// Whether its first record was skipped, as when another author's must come before it.
    var waits = false
    /// Whether the log has its first record: a part of one stays in the outbox until the last is there too.
    var isOpen = false
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
    let authors = try outbox.authors
    let hasDrained = progress.keys.contains { !authors.contains($0) }
    for author in authors {
      var state = progress[author] ?? Progress(since: now)
      let isMissing = horizon.time.map { $0 - state.since >= limits.patience } ?? false
      if isMissing || state.waits && hasDrained {
        state = Progress(since: now, isOpen: state.isOpen)
      }
      // Numbers have no gaps, so those from the first one on are under way.
      let first = try outbox.firstNumber(of: author) ?? 1
      if state.sentThrough < first { state.since = now }
      let sent = state.sentThrough >= first ? Int(state.sentThrough - first + 1) : 0
      // Its first record can have to wait for another author, and all others with it.
      let window = first > 1 || state.isOpen ? limits.window : 1
      let room = max(0, min(window - sent, limits.window - records.count))
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

  /// These records could not be given to the brokers, or not all of them.
  ///
  /// What was sent before them can be lost too. It goes again, unless the node is behind: then it can be in what is not
  /// read yet.
  package mutating func noteFailed(
    _ records: [SealedRecord], _ horizon: ReadHorizon, _ now: Duration
  ) {
    if horizon.time.map({ now - $0 < limits.patience }) ?? false { return noteReturned() }
    hasMore = true
    for name in records.map(\.name) {
      guard let sent = progress[name.author]?.sentThrough else { continue }
      progress[name.author]?.sentThrough = min(sent, name.number - 1)
    }
  }

  /// A record of this author was applied, or a part of one taken.
  package mutating func noteApplied(_ name: RecordNumber, _ now: Duration) {
    progress[name.author]?.since = now
    progress[name.author]?.hasBegunAgain = false
    progress[name.author]?.isOpen = true
  }

  /// A record of this author was in the log before.
  package mutating func noteRepeated(_ name: RecordNumber) {
    progress[name.author]?.isOpen = true
  }

  /// A record of this author was skipped, because one before it is not in the log.
  package mutating func noteGap(_ name: RecordNumber, _ horizon: ReadHorizon, _ now: Duration) {
    guard let state = progress[name.author] else { return }
    if name.number == 1 {
      progress[name.author]?.waits = true
      return
    }
    // What was sent before it began again has been read by then.
    let isOld = state.hasBegunAgain && horizon.time.map { $0 <= state.since } ?? true
    if isOld || now - state.since < limits.gapPause { return }
    hasMore = true
    progress[name.author] = Progress(since: now, hasBegunAgain: true, isOpen: state.isOpen)
  }

  /// Records have come back into the outbox: their authors' records are sent again from the first.
  package mutating func noteReturned() {
    hasMore = true
    progress = [:]
  }
}
