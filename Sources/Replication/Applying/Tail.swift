/// A record in the log, at its place.
package struct LogEntry: Sendable, Hashable {
  /// Its place, from 1.
  package let sequence: UInt64
  /// When the broker stored it, on the broker's clock.
  ///
  /// A record that was lost and appended again at the same place has another. It decides nothing but that.
  package let storedAt: Int64
  package let record: SealedRecord

  package init(sequence: UInt64, storedAt: Int64, _ record: SealedRecord) {
    self.sequence = sequence
    self.storedAt = storedAt
    self.record = record
  }
}

/// What a member remembers of a record at its place, without the record's bytes.
package struct RecordPlace: Sendable, Hashable {
  package let sequence: UInt64
  /// As in ``LogEntry/storedAt``.
  package let storedAt: Int64
  package let name: RecordNumber
  package let key: UInt32
  package let digest: RecordDigest

  package init(
    sequence: UInt64, storedAt: Int64, name: RecordNumber, key: UInt32, digest: RecordDigest
  ) {
    self.sequence = sequence
    self.storedAt = storedAt
    self.name = name
    self.key = key
    self.digest = digest
  }

  package init(_ entry: LogEntry) {
    self.init(
      sequence: entry.sequence, storedAt: entry.storedAt, name: entry.record.name,
      key: entry.record.key, digest: entry.record.digest)
  }
}

/// The last applied records, which the brokers can still forget, each with what undoes it.
///
/// A broker forgets at most what it stored within its synchronization interval. So a record leaves the tail when a
/// read has found it in the log an interval after it was first read.
package struct Tail: Sendable {
  package struct Element: Sendable {
    package fileprivate(set) var place: RecordPlace
    /// When it was read, on this node's clock.
    var readAt: Duration
    /// Whether it took effect, or was skipped.
    package let isApplied: Bool
    package let before: ShardState.Change

    /// - Parameter readAt: for one from the database, the time of the start: when it was read is not known any more.
    package init(
      _ place: RecordPlace, readAt: Duration, isApplied: Bool, before: ShardState.Change
    ) {
      self.place = place
      self.readAt = readAt
      self.isApplied = isApplied
      self.before = before
    }
  }

  private(set) var elements: ArraySlice<Element> = []
  /// The last record before the tail, with which a comparison begins; nil before the first record.
  private(set) var base: RecordPlace?

  init() {}

  init(base: RecordPlace?, _ elements: [Element]) {
    self.base = base
    self.elements = ArraySlice(elements)
  }

  /// Records up to here are never undone.
  var safe: UInt64 { base?.sequence ?? 0 }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func removeLast() -> Element? { elements.popLast() }

  /// Drops what was read up to `time`.
  mutating func release(readBy time: Duration) {
    while let first = elements.first, first.readAt <= time {
      base = first.place
      elements.removeFirst()
    }
    // A slice keeps the storage of what was removed.
    if elements.startIndex > 2 * elements.count + 64 { elements = ArraySlice(Array(elements)) }
  }

  func element(after sequence: UInt64) -> Element? {
    // A report can name any position.
    guard let first = elements.first?.place.sequence, let last = elements.last?.place.sequence,
      sequence < last, sequence + 1 >= first
    else { return nil }
    let index = elements.startIndex + Int(sequence + 1 - first)
    return index < elements.endIndex ? elements[index] : nil
  }

  /// What is expected at a place of the tail, or just before it.
  func place(at sequence: UInt64) -> RecordPlace? {
    if sequence == base?.sequence { return base }
    return sequence > 0 ? element(after: sequence - 1)?.place : nil
  }

  /// Remembers that a record was found at its place, which can have been stored there again.
  ///
  /// - Returns: whether it was stored again.
  mutating func note(_ entry: LogEntry, readAt: Duration) -> Bool {
    guard let first = elements.first?.place.sequence, entry.sequence >= first else { return false }
    let index = elements.startIndex + Int(entry.sequence - first)
    guard index < elements.endIndex, elements[index].place.storedAt != entry.storedAt else {
      return false
    }
    elements[index].place = RecordPlace(entry)
    elements[index].readAt = readAt
    return true
  }
}
