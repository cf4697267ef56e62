internal import GRDB

/// The verbs of one transaction, and what has become of each.
///
/// A verb has a savepoint of its own, so that one that fails takes nothing with it. Two kinds need none: the
/// first, as the transaction holds nothing else when it fails, and one of a single statement, which
/// SQLite undoes by itself.
struct CommitGroup {
  /// Most verbs and about the most bytes of one transaction; the verb that goes beyond still joins.
  static let maximumOperationCount = 1_000
  static let maximumByteCount = 4 << 20

  private(set) var done: [(verb: PendingWrite, succeed: @Sendable () -> Void)] = []
  private(set) var hasChanges = false
  private var byteCount = 0
  /// What its verbs have published, but for the sums, which are written once.
  private var publication: Publication?

  var isFull: Bool {
    done.count >= Self.maximumOperationCount || byteCount >= Self.maximumByteCount
  }

  /// Runs one more verb in the transaction; one that fails is told so, and leaves no trace.
  ///
  /// - Throws: ``TransactionRolledBack`` if SQLite has undone the whole transaction: a full disk or an
  ///   I/O error does that.
  mutating func add(_ verb: PendingWrite, _ db: Database) throws(TransactionRolledBack) {
    if verb.messages == nil { try writeSums() }
    let hasSavepoint = !done.isEmpty && !takesOneStatement(verb)
    let publicationBefore = hasSavepoint ? publication : nil
    let changeCount = db.totalChangesCount
    do {
      if hasSavepoint { try db.cachedStatement(sql: "SAVEPOINT verb").execute() }
      let succeed = try verb.perform(db, &publication)
      if hasSavepoint { try db.cachedStatement(sql: "RELEASE verb").execute() }
      guard db.isInsideTransaction else { throw DatabaseError(resultCode: .SQLITE_ABORT) }
      done.append((verb, succeed))
      byteCount += verb.byteCount
      if db.totalChangesCount != changeCount { hasChanges = true }
    } catch {
      verb.fail(EngineError(translating: error, during: verb.operation))
      if hasSavepoint { publication = publicationBefore }
      try undo(hasSavepoint: hasSavepoint, db)
    }
  }

  /// Writes what the verbs have in common; belongs before the commit.
  mutating func finish(_ db: Database) throws {
    if hasChanges { try EngineDatabase.finish(&publication, db) }
  }

  private func takesOneStatement(_ verb: PendingWrite) -> Bool {
    guard let messages = verb.messages, messages.count == 1, let publication else { return false }
    return publication.takesOneStatement(messages[0])
  }

  /// For a verb that may look at what the others have published.
  private mutating func writeSums() throws(TransactionRolledBack) {
    do {
      try publication.take()?.finish()
    } catch {
      throw TransactionRolledBack()
    }
  }

  /// Undoes what the failed verb has done, and it alone.
  private func undo(hasSavepoint: Bool, _ db: Database) throws(TransactionRolledBack) {
    guard db.isInsideTransaction, !done.isEmpty else { throw TransactionRolledBack() }
    if !hasSavepoint { return }
    do {
      try db.cachedStatement(sql: "ROLLBACK TO verb").execute()
      try db.cachedStatement(sql: "RELEASE verb").execute()
    } catch {
      throw TransactionRolledBack()
    }
  }

  /// Tells every caller that its verb is on the disk.
  func succeed() {
    for (_, succeed) in done { succeed() }
  }

  /// Tells every caller why nothing, or perhaps nothing, came of it.
  func fail(_ error: (PendingWrite) -> EngineError) {
    for (verb, _) in done { verb.fail(error(verb)) }
  }
}

/// The transaction is to be given up: nothing of it stays, through no fault of the verbs done in it.
struct TransactionRolledBack: Error {}
