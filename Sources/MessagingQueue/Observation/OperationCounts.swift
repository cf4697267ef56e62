internal import GRDB
internal import Synchronization

/// What transactions have done with messages: numbers, and nothing of the messages.
struct OperationCounts: Sendable, Hashable {
  var published = 0
  var received = 0
  /// Of those received, the ones that had been delivered before.
  var redelivered = 0
  var acknowledged = 0
  var released = 0
  var leasesExpired = 0
  /// Messages whose time to live was over before a consumer had them.
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

/// Keeps the tally of the transaction that is open, and hands it on when that is committed.
///
/// A verb notes what it did at its very end, so that one that fails in a transaction it shares has
/// noted nothing. What a caller's own savepoint takes back afterwards is counted all the same.
final class CommitCounter: TransactionObserver, Sendable {
  private let open = Mutex(OperationCounts())
  private let didCommit: @Sendable (OperationCounts) -> Void

  /// - Parameter didCommit: told of each commit with anything to count, on the writer's queue.
  init(didCommit: @escaping @Sendable (OperationCounts) -> Void) {
    self.didCommit = didCommit
  }

  /// Notes what a verb did in the transaction that the writer has open.
  func note(_ change: (inout OperationCounts) -> Void) {
    open.withLock { change(&$0) }
  }

  private func take() -> OperationCounts {
    open.withLock { open in
      defer { open = OperationCounts() }
      return open
    }
  }

  // MARK: How the transaction ends

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}

  func databaseDidCommit(_ db: Database) {
    let tally = take()
    if tally != OperationCounts() { didCommit(tally) }
  }

  func databaseDidRollback(_ db: Database) { _ = take() }
}
