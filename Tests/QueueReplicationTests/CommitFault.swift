import GRDB
import Synchronization

/// Has transactions fail when they are committed.
final class CommitFault: TransactionObserver, Sendable {
  /// The rows that a transaction has inserted into these tables.
  struct Inserted {
    var outbox = 0
    var tail = 0
  }

  private struct State {
    var inserted = Inserted()
    var count = 0
    var isOver = false
  }

  private let state = Mutex(State())
  private let fails: @Sendable (Inserted) -> Bool
  private let isUnknown: Bool

  /// - Parameters:
  ///   - pool: its transactions fail.
  ///   - isUnknown: whether it is unknown if the transaction is on the disk.
  ///   - fails: says which transactions fail.
  init(
    of pool: DatabasePool, isUnknown: Bool = false,
    _ fails: @escaping @Sendable (Inserted) -> Bool
  ) throws {
    self.isUnknown = isUnknown
    self.fails = fails
    pool.add(transactionObserver: self)
    // An observer learns nothing of statements that the engine runs itself.
    try pool.writeWithoutTransaction { db in
      for table in ["outbox", "tail"] {
        let name = "note_\(table)_\(UInt32.random(in: 0...(.max)))"
        db.add(
          function: DatabaseFunction(name, argumentCount: 0) { [weak self] _ in
            self?.state.withLock {
              if table == "tail" { $0.inserted.tail += 1 } else { $0.inserted.outbox += 1 }
            }
            return nil
          })
        try db.execute(
          sql: """
            CREATE TEMP TRIGGER \(name) AFTER INSERT ON main.replication_\(table)
            BEGIN SELECT \(name)(); END
            """)
      }
    }
  }

  /// How many have failed.
  var count: Int { state.withLock(\.count) }

  /// No more of them fail.
  func end() { state.withLock { $0.isOver = true } }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}

  func databaseWillCommit() throws {
    try state.withLock { state in
      guard !state.isOver, fails(state.inserted) else { return }
      state.count += 1
      throw DatabaseError(resultCode: isUnknown ? .SQLITE_IOERR : .SQLITE_FULL)
    }
  }

  func databaseDidCommit(_ db: Database) { state.withLock { $0.inserted = Inserted() } }
  func databaseDidRollback(_ db: Database) { state.withLock { $0.inserted = Inserted() } }
}
