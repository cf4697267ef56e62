internal import GRDB

/// The verbs of one transaction, and what has become of each.
///
/// Every verb but the first has a savepoint of its own, so that one that fails takes nothing with it.
/// The first needs none: when it fails, the transaction holds nothing else.
struct CommitGroup {
  /// Most verbs and about the most bytes of one transaction; the verb that goes beyond still joins.
  static let mostVerbs = 1_000
  static let mostBytes = 4 << 20

  private(set) var done: [(verb: WaitingVerb, succeed: @Sendable () -> Void)] = []
  private(set) var hasChanges = false
  private var byteCount = 0

  var isFull: Bool { done.count >= Self.mostVerbs || byteCount >= Self.mostBytes }

  /// Runs one more verb in the transaction; one that fails is told so, and leaves no trace.
  ///
  /// - Throws: ``LostTransaction`` if SQLite has undone the whole transaction: a full disk or an
  ///   I/O error does that.
  mutating func add(_ verb: WaitingVerb, _ db: Database) throws(LostTransaction) {
    let hasSavepoint = !done.isEmpty
    let changeCount = db.totalChangesCount
    do {
      if hasSavepoint { try db.cachedStatement(sql: "SAVEPOINT verb").execute() }
      let succeed = try verb.perform(db)
      if hasSavepoint { try db.cachedStatement(sql: "RELEASE verb").execute() }
      guard db.isInsideTransaction else { throw DatabaseError(resultCode: .SQLITE_ABORT) }
      done.append((verb, succeed))
      byteCount += verb.byteCount
      if db.totalChangesCount != changeCount { hasChanges = true }
    } catch {
      verb.fail(EngineError(translating: error, during: verb.operation))
      try undo(hasSavepoint: hasSavepoint, db)
    }
  }

  /// Undoes what the failed verb has done, and it alone.
  private func undo(hasSavepoint: Bool, _ db: Database) throws(LostTransaction) {
    guard hasSavepoint, db.isInsideTransaction else { throw LostTransaction() }
    do {
      try db.cachedStatement(sql: "ROLLBACK TO verb").execute()
      try db.cachedStatement(sql: "RELEASE verb").execute()
    } catch {
      throw LostTransaction()
    }
  }

  /// Tells every caller that its verb is on the disk.
  func succeed() {
    for (_, succeed) in done { succeed() }
  }

  /// Tells every caller why nothing, or perhaps nothing, came of it.
  func fail(_ error: (WaitingVerb) -> EngineError) {
    for (verb, _) in done { verb.fail(error(verb)) }
  }
}

/// The transaction is to be given up: nothing of it stays, through no fault of the verbs done in it.
struct LostTransaction: Error {}
