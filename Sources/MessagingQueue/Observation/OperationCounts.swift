internal import GRDB
internal import Synchronization

/// Counts what transactions did with messages; contains nothing of the messages.
struct OperationCounts: Sendable, Hashable {
  var published = 0
  var received = 0
  /// Received messages that had been delivered before.
  var redelivered = 0
  var acknowledged = 0
  var released = 0
  var leasesExpired = 0
  /// Messages whose time to live ended before a consumer got them.
  var expired = 0
  var deadLettered = 0
  var redriven = 0
  /// Messages that retention removed.
  var retired = 0
  var purged = 0

  mutating func countReceived(_ deliveries: [Delivery]) {
    received += deliveries.count
    redelivered += deliveries.count { $0.attempt > 1 }
  }
}

/// Counts the operations of the open transaction, and reports them when it is committed.
///
/// An operation notes its counts as its last step, so that a failed operation in a shared
/// transaction notes nothing. If a caller rolls back a savepoint of its own later, the operation is
/// still counted.
final class CommitCounter: TransactionObserver, Sendable {
  private let open = Mutex(OperationCounts())
  private let didCommit: @Sendable (OperationCounts) -> Void

  /// - Parameter didCommit: called on the writer's queue after each commit with counts.
  init(didCommit: @escaping @Sendable (OperationCounts) -> Void) {
    self.didCommit = didCommit
  }

  /// Notes what an operation did in the writer's open transaction.
  func note(_ change: (inout OperationCounts) -> Void) {
    open.withLock { change(&$0) }
  }

  private func take() -> OperationCounts {
    open.withLock { open in
      defer { open = OperationCounts() }
      return open
    }
  }

  // MARK: The end of the transaction

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}

  func databaseDidCommit(_ db: Database) {
    let counts = take()
    if counts != OperationCounts() { didCommit(counts) }
  }

  func databaseDidRollback(_ db: Database) { _ = take() }
}
