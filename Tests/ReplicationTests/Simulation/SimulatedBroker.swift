import Replication

/// A replicated log that stores what arrives, and forgets the end of it when it loses power.
struct SimulatedBroker {
  /// How long a broker can keep what it stored without a sync, in milliseconds.
  static let syncInterval: Int64 = 3_000

  struct Stored {
    let entry: LogEntry
    let time: Int64
  }

  private(set) var stored: [Stored] = []
  /// The sequence before the first record.
  private(set) var trimmedThrough: UInt64 = 0
  var isUp = true
  private var storeCount: Int64 = 0

  var last: UInt64 { trimmedThrough + UInt64(stored.count) }

  mutating func append(_ record: SealedRecord, at time: Int64) {
    guard isUp else { return }
    storeCount += 1
    stored.append(
      Stored(entry: LogEntry(sequence: last + 1, storedAt: storeCount, record), time: time))
  }

  /// The record at `place` and those after it.
  func read(from place: UInt64, most: Int) -> (first: UInt64, last: UInt64, entries: [LogEntry]) {
    let start =
      place > trimmedThrough ? Int(min(place - trimmedThrough - 1, UInt64(stored.count))) : 0
    return (trimmedThrough + 1, last, stored[start...].prefix(most).map(\.entry))
  }

  mutating func trim(through sequence: UInt64) {
    guard isUp, sequence > trimmedThrough, sequence < last else { return }
    stored.removeFirst(Int(sequence - trimmedThrough))
    trimmedThrough = sequence
  }

  /// Loses what was stored after a time, if it was not synchronized.
  mutating func forget(after time: Int64, now: Int64) -> [SealedRecord] {
    let cut = max(time, now - Self.syncInterval + 1)
    var forgotten: [SealedRecord] = []
    while let last = stored.last, last.time >= cut, stored.count > 1 {
      forgotten.append(stored.removeLast().entry.record)
    }
    return forgotten
  }

  var records: [SealedRecord] { stored.map(\.entry.record) }
}
