/// The rows that records change, and what undoes the last of them: in the transaction of their position.
///
/// An error means that the transaction must be rolled back, and the ``Applier`` be loaded again.
package protocol ReplicatedTables {
  /// Applies a record.
  ///
  /// What it does must depend on nothing but the rows, the record and `shard`.
  mutating func apply(
    _ record: Record, _ name: RecordNumber, at position: UInt64, in shard: ShardState,
    _ clock: inout TimetokenRule) throws

  /// Stores the share of a record whose last part has not come.
  mutating func keepShare(_ share: [UInt8], _ name: RecordNumber, at position: UInt64) throws

  /// The shares that an author has, in their order.
  func shares(of author: AuthorID) throws -> [[UInt8]]

  /// An author's record is complete, and its shares are used.
  mutating func dropShares(of author: AuthorID, at position: UInt64) throws

  /// Stores what undoes the record that was just applied or skipped, with its bytes.
  mutating func keep(_ record: SealedRecord, _ element: Tail.Element) throws

  /// Undoes the records after this position.
  ///
  /// - Returns: those that had taken effect, in the order of the log.
  mutating func undo(after position: UInt64) throws -> [SealedRecord]

  /// Notes that a record was stored again at its place.
  mutating func note(_ place: RecordPlace) throws

  /// Forgets how to undo records up to this one.
  mutating func release(through place: RecordPlace) throws
}

/// Applies the log in its order, and undoes what the brokers have forgotten: event in, outcome out.
///
/// All of it is stored with the tables, in one transaction for each batch. See `docs/explanation/replication.md`.
package struct Applier: Sendable {
  package internal(set) var state = ShardState()
  private(set) var tail = Tail()
  let rules: SafetyRules

  package init(rules: SafetyRules = .all) { self.rules = rules }

  /// The authors and members that differ from what the database has, after the last batch.
  package private(set) var changed = Changed()

  package struct Changed: Sendable {
    package fileprivate(set) var authors: Set<AuthorID> = []
    package fileprivate(set) var members: Set<MemberID> = []

    fileprivate mutating func note(_ change: ShardState.Change) {
      if let author = change.author { authors.insert(author.id) }
      if let member = change.member { members.insert(member.id) }
    }
  }

  /// Goes on from what a database has stored.
  ///
  /// - Parameter base: the last record that is never undone; nil before the first.
  package init(_ state: ShardState, base: RecordPlace?, tail: [Tail.Element]) {
    self.init()
    self.state = state
    self.tail = Tail(base: base, tail)
  }

  /// How far the tail was compared with the log, since a read did not begin with the last applied record.
  private var comparedThrough: UInt64?

  /// The place with which the next read begins: the last record that was applied, or that was compared.
  package var readPlace: UInt64 { comparedThrough ?? state.position }

  package var safe: UInt64 { tail.safe }

  /// The state at the safe position.
  package var safeValues: ShardState.Values { tail.elements.first?.before.values ?? state.values }

  /// The oldest key of the records that can still be undone.
  package var oldestKey: UInt32? { tail.elements.lazy.filter(\.isApplied).map(\.place.key).min() }

  /// The last record that is never undone; nil before the first.
  package var base: RecordPlace? { tail.base }

  /// A part of the log, as one read found it.
  package struct Batch: Sendable {
    /// The first and the last sequence that the log had; `last` is `first - 1` when it was empty.
    package let first: UInt64
    package let last: UInt64
    /// Whether the log had no more than `last` at some time after ``sentAt``; otherwise it can have had.
    package let isEndKnown: Bool
    /// The record at ``Applier/readPlace`` if the log had it, and those that follow it.
    package let entries: [LogEntry]
    /// When the read was sent, on this node's clock: the log had these records after that.
    package let sentAt: Duration
    /// When its answer came: these records were stored before that.
    package let receivedAt: Duration

    package init(
      first: UInt64, last: UInt64, isEndKnown: Bool = true, entries: [LogEntry], sentAt: Duration,
      receivedAt: Duration
    ) {
      self.first = first
      self.last = last
      self.isEndKnown = isEndKnown
      self.entries = entries
      self.sentAt = sentAt
      self.receivedAt = receivedAt
    }
  }

  /// What happened, in order, for everything that waits for it.
  package enum Outcome: Sendable {
    /// A record took effect; timetokens after the first value were given out, up to the second.
    case applied(RecordNumber, Record, timetokens: ClosedRange<Int64>)
    /// A part of a record was taken, which takes effect with its last.
    case continued(RecordNumber)
    /// A record was skipped, because its author has used its number before.
    case repeated(RecordNumber)
    /// A record was skipped, because records of its author before it are not in the log, or because no member has
    /// sealed it. The author sends again.
    case gap(RecordNumber)
    /// A record was skipped, because it is sealed under a key that is no longer used.
    case retiredKey(RecordNumber)
    /// Records were undone. They belong into the outbox again, in this order.
    case undone([SealedRecord], repair: ShardState.TimetokenRange)
  }

  /// Why a node stops applying, until an operator has looked at it.
  package enum Alarm: Error, Sendable, Hashable {
    /// The log no longer has the next record: this database must be replaced by a member's backup.
    case trimmed(needed: UInt64, first: UInt64)
    /// The log differs from what was applied further back than brokers can forget.
    case foreignLog(at: UInt64)
    /// The key of the next record of its author is missing, or what it has cannot be read.
    case unreadable(RecordNumber)
    /// A member that applied the same records has come to something else.
    case diverged(MemberID, at: UInt64)
  }

  /// Whether a part of the log changes nothing: it has no more than the last applied record, and none leaves the tail.
  package func isIdle(_ batch: Batch, syncInterval: Duration) -> Bool {
    guard comparedThrough == nil, batch.last == state.position, batch.entries.count <= 1,
      state.position == 0 || isExpected(batch.entries.first, at: state.position)
    else { return false }
    return tail.elements.first.map { $0.readAt > batch.sentAt - syncInterval } ?? true
  }

  /// Takes a part of the log.
  ///
  /// - Parameters:
  ///   - syncInterval: the longest that a broker of the cluster can keep a record without a sync.
  ///   - tables: changed with the state, in one transaction.
  ///   - open: opens a record; it throws if that fails.
  ///   - outcomes: what happened, also before an alarm.
  /// - Throws: ``Alarm``; the records before it are applied. `CryptoError` if a digest fails.
  package mutating func take(
    _ batch: Batch, syncInterval: Duration, into tables: inout some ReplicatedTables,
    outcomes: inout [Outcome], open: (SealedRecord) throws -> [UInt8]
  ) throws {
    changed = Changed()
    guard try compare(batch, &tables, &outcomes) else { return }
    var isDoubtful = false
    for entry in batch.entries where entry.sequence > state.position {
      if entry.sequence != state.position + 1, rules.contains(.refusesTrimmedLog) {
        throw Alarm.trimmed(needed: state.position + 1, first: entry.sequence)
      }
      // The next read compares it: it can have been changed on the way to this member alone.
      if isDoubtful, isSealed(entry.record, open) { break }
      try apply(entry, readAt: batch.receivedAt, &tables, &outcomes, open)
      isDoubtful = tail.elements.last?.isApplied == false && !isSealed(entry.record, open)
    }
    let released = tail.base
    if rules.contains(.keepsTail) {
      tail.release(readBy: batch.sentAt - syncInterval)
    } else {
      tail.release(readBy: batch.receivedAt)
    }
    if let base = tail.base, base != released { try tables.release(through: base) }
  }

  /// Applies records as if they were the next ones of the log: on a database that leaves its shard for good.
  package mutating func takeLast(
    _ records: [SealedRecord], into tables: inout some ReplicatedTables,
    outcomes: inout [Outcome], open: (SealedRecord) throws -> [UInt8]
  ) throws {
    for record in records {
      let entry = LogEntry(sequence: state.position + 1, storedAt: 0, record)
      try apply(entry, readAt: .zero, &tables, &outcomes, open)
    }
  }

  /// Compares the records of the batch with those applied, and undoes what differs.
  ///
  /// - Returns: whether the batch continues from what is applied now.
  private mutating func compare(
    _ batch: Batch, _ tables: inout some ReplicatedTables, _ outcomes: inout [Outcome]
  ) throws -> Bool {
    guard rules.contains(.comparesOverlap), state.position > 0 else { return true }
    let place = readPlace
    if batch.first > max(place, 1) {
      // Trims keep the record at the safe position of every member.
      if rules.contains(.refusesTrimmedLog) {
        throw Alarm.trimmed(needed: place, first: batch.first)
      }
      return true
    }
    guard let start = comparedThrough else {
      if isExpected(batch.entries.first, at: place) { return true }
      comparedThrough = tail.safe
      return false
    }
    if start > tail.safe, !isExpected(batch.entries.first, at: start) {
      comparedThrough = tail.safe
      return false
    }
    var common = start
    var differs = start == 0
    for entry in batch.entries {
      differs = tail.place(at: entry.sequence)?.digest != entry.record.digest
      if differs { break }
      if tail.note(entry, readAt: batch.receivedAt) { try tables.note(RecordPlace(entry)) }
      common = entry.sequence
    }
    if start > 0, batch.entries.first.map({ common < $0.sequence }) ?? true {
      throw Alarm.foreignLog(at: place)
    }
    // What a consumer does not bring can still be in the log.
    let isAtEnd = batch.isEndKnown && common >= batch.last
    if !differs, common < state.position, !isAtEnd {
      comparedThrough = common
      return false
    }
    comparedThrough = nil
    if common < state.position { try undo(after: common, &tables, &outcomes) }
    return true
  }

  /// Whether it is the record that was applied at this place, and has been stored there since.
  private func isExpected(_ found: LogEntry?, at place: UInt64) -> Bool {
    guard let found, let expected = tail.place(at: place), found.sequence == place else {
      return false
    }
    return found.storedAt == expected.storedAt && found.record.digest == expected.digest
  }

  mutating func append(
    _ element: Tail.Element, _ record: SealedRecord, _ tables: inout some ReplicatedTables
  ) throws {
    try tables.keep(record, element)
    changed.note(element.before)
    tail.append(element)
  }

  private mutating func undo(
    after position: UInt64, _ tables: inout some ReplicatedTables, _ outcomes: inout [Outcome]
  ) throws {
    let highWater = state.values.highWater
    while state.position > position, let element = tail.removeLast() {
      changed.note(element.before)
      state.undo(element.before)
    }
    outcomes.append(
      .undone(
        try tables.undo(after: position),
        repair: ShardState.TimetokenRange(from: state.values.highWater, to: highWater)))
  }
}
