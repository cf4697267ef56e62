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

/// The last applied records, which the brokers can still forget, each with what undoes it.
///
/// A broker forgets at most what it stored within its synchronization interval. So a record leaves the tail when a
/// read has found it in the log an interval after it was first read.
package struct Tail: Sendable {
  struct Element: Sendable {
    var entry: LogEntry
    /// When it was read, on this node's clock.
    var readAt: Duration
    /// Whether it took effect, or was skipped.
    let isApplied: Bool
    let before: ShardState.Change
  }

  private(set) var elements: ArraySlice<Element> = []
  /// The last record before the tail, with which a comparison begins; nil before the first record.
  private(set) var base: LogEntry?

  /// Records up to here are never undone.
  var safe: UInt64 { base?.sequence ?? 0 }

  /// The last record that was read.
  var last: LogEntry? { elements.last?.entry ?? base }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func removeLast() -> Element? { elements.popLast() }

  /// Drops what was read up to `time`.
  mutating func release(readBy time: Duration) {
    while let first = elements.first, first.readAt <= time {
      base = first.entry
      elements.removeFirst()
    }
    // A slice keeps the storage of what was removed.
    if elements.startIndex > 2 * elements.count + 64 { elements = ArraySlice(Array(elements)) }
  }

  func element(after sequence: UInt64) -> Element? {
    // A report can name any position.
    guard let first = elements.first?.entry.sequence, let last = elements.last?.entry.sequence,
      sequence < last, sequence + 1 >= first
    else { return nil }
    let index = elements.startIndex + Int(sequence + 1 - first)
    return index < elements.endIndex ? elements[index] : nil
  }

  /// What is expected at a place of the tail, or just before it.
  func entry(at sequence: UInt64) -> LogEntry? {
    if sequence == base?.sequence { return base }
    return sequence > 0 ? element(after: sequence - 1)?.entry : nil
  }

  /// Remembers that a record was found at its place, which can have been stored there again.
  mutating func note(_ entry: LogEntry, readAt: Duration) {
    guard let first = elements.first?.entry.sequence, entry.sequence >= first else { return }
    let index = elements.startIndex + Int(entry.sequence - first)
    guard index < elements.endIndex, elements[index].entry.storedAt != entry.storedAt else {
      return
    }
    elements[index].entry = entry
    elements[index].readAt = readAt
  }
}
