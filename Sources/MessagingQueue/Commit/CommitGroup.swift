internal import GRDB

/// The operations of one transaction, and the outcome of each.
///
/// An operation has a savepoint of its own, so that a failed one undoes no other. Two kinds need
/// none: the first, as the transaction holds nothing else when it fails, and one with a single
/// statement, which SQLite undoes by itself.
struct CommitGroup {
  /// The most operations and about the most bytes of one transaction; the operation that exceeds a
  /// limit still joins.
  static let maximumOperationCount = 1_000
  static let maximumByteCount = 4 << 20

  private(set) var done: [(write: PendingWrite, succeed: @Sendable () -> Void)] = []
  private(set) var hasChanges = false
  private var byteCount = 0
  /// The publication of its operations; the sums are written once at the end.
  private var publication: Publication?

  var isFull: Bool {
    done.count >= Self.maximumOperationCount || byteCount >= Self.maximumByteCount
  }

  /// Runs one more operation in the transaction; a failed one gets its error and leaves no trace.
  ///
  /// - Throws: ``TransactionRolledBack`` if SQLite has undone the whole transaction, as it does
  ///   after a full disk or an I/O error.
  mutating func add(_ write: PendingWrite, _ db: Database) throws(TransactionRolledBack) {
    if write.messages == nil { try writeSums() }
    let hasSavepoint = !done.isEmpty && !takesOneStatement(write)
    let publicationBefore = hasSavepoint ? publication : nil
    let changeCount = db.totalChangesCount
    do {
      if hasSavepoint { try db.cachedStatement(sql: "SAVEPOINT pending_write").execute() }
      let succeed = try write.perform(db, &publication)
      if hasSavepoint { try db.cachedStatement(sql: "RELEASE pending_write").execute() }
      guard db.isInsideTransaction else { throw DatabaseError(resultCode: .SQLITE_ABORT) }
      done.append((write, succeed))
      byteCount += write.byteCount
      if db.totalChangesCount != changeCount { hasChanges = true }
    } catch {
      write.fail(EngineError(translating: error, during: write.operation))
      if hasSavepoint { publication = publicationBefore }
      try undo(hasSavepoint: hasSavepoint, db)
    }
  }

  /// Writes what the operations have in common; call it before the commit.
  mutating func finish(_ db: Database) throws {
    if hasChanges { try EngineDatabase.finish(&publication, isLast: true, db) }
  }

  private func takesOneStatement(_ write: PendingWrite) -> Bool {
    guard let messages = write.messages, messages.count == 1, let publication else { return false }
    return publication.takesOneStatement(messages[0])
  }

  /// Writes the sums for an operation that can read what the others have published.
  private mutating func writeSums() throws(TransactionRolledBack) {
    do {
      try publication.take()?.finish()
    } catch {
      throw TransactionRolledBack()
    }
  }

  /// Undoes the failed operation and no other.
  private func undo(hasSavepoint: Bool, _ db: Database) throws(TransactionRolledBack) {
    guard db.isInsideTransaction, !done.isEmpty else { throw TransactionRolledBack() }
    if !hasSavepoint { return }
    do {
      try db.cachedStatement(sql: "ROLLBACK TO pending_write").execute()
      try db.cachedStatement(sql: "RELEASE pending_write").execute()
    } catch {
      throw TransactionRolledBack()
    }
  }

  /// Tells every caller that its operation is on the disk.
  func succeed() {
    for (_, succeed) in done { succeed() }
  }

  /// Tells every caller why its operation failed or has an unknown outcome.
  func fail(_ error: (PendingWrite) -> EngineError) {
    for (write, _) in done { write.fail(error(write)) }
  }
}

/// The transaction is rolled back, through no fault of the operations that have succeeded in it.
struct TransactionRolledBack: Error {}
