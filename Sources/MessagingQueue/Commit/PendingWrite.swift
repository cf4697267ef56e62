internal import GRDB

/// Operations in the order in which they came; taking the first costs the same for any number.
struct PendingWriteQueue {
  private(set) var writes: [PendingWrite?] = []
  /// The index of the first operation; earlier entries have been taken.
  private var start = 0

  var isEmpty: Bool { start == writes.count }
  var count: Int { writes.count - start }
  var first: PendingWrite? { isEmpty ? nil : writes[start] }
  var last: PendingWrite? { isEmpty ? nil : writes[writes.count - 1] }

  mutating func append(_ write: PendingWrite) { writes.append(write) }

  mutating func popFirst() -> PendingWrite? {
    if isEmpty { return nil }
    let first = writes[start].take()
    start += 1
    // Removing the taken half at each doubling costs one move for each operation.
    if start * 2 >= writes.count {
      writes.removeFirst(start)
      start = 0
    }
    return first
  }

  /// Removes the operation with this number; nil if it is not in the queue.
  mutating func remove(_ number: UInt64) -> PendingWrite? {
    guard let index = writes[start...].firstIndex(where: { $0?.number == number }) else {
      return nil
    }
    return writes.remove(at: index)
  }

  /// Removes the first operations, up to this number.
  mutating func removeAll(through last: UInt64) -> [PendingWrite] {
    var taken: [PendingWrite] = []
    while !isEmpty, let next = writes[start], next.number <= last, let write = popFirst() {
      taken.append(write)
    }
    return taken
  }
}

/// An operation in a transaction, whose caller waits for the commit.
struct PendingWrite: Sendable {
  /// A number that rises with every operation.
  let number: UInt64

  /// The name of the operation, for errors.
  let operation: String

  /// About how much it writes.
  let byteCount: Int

  /// Whether its commit is synchronized.
  let isDurable: Bool

  /// The messages that it publishes; nil for any other operation.
  let messages: [Message]?

  /// Does the work, and returns the closure that reports its success to the caller after the
  /// commit.
  ///
  /// Publications go into the one that the transaction's operations share. It can run again in
  /// another transaction, if the first was lost through another operation's fault.
  let perform: @Sendable (Database, inout Publication?) throws -> @Sendable () -> Void

  /// Reports the failure to the caller.
  let fail: @Sendable (EngineError) -> Void
}
