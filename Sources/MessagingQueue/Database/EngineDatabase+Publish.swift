internal import GRDB

extension EngineDatabase {
  /// Runs an operation in the caller's transaction; one that fails leaves the transaction as it was.
  ///
  /// - Returns: its result, and whether it changed something.
  /// - Throws: `invalidArgument` outside a transaction, and for another engine's connection; the errors of `body`.
  func join<Result>(
    _ db: Database, during operation: String,
    _ body: (EngineDatabase, inout Publication?) throws -> Result
  ) throws(EngineError) -> (result: Result, hasChanges: Bool) {
    try requireTransaction(db, during: operation)
    return try translatingErrors(during: "\(operation) in the caller's transaction") {
      let changeCount = db.totalChangesCount
      var results: [Result] = []
      try db.inSavepoint {
        var publication: Publication?
        results.append(try body(self, &publication))
        if db.totalChangesCount != changeCount { try Self.finish(&publication, db) }
        return .commit
      }
      return (results[0], db.totalChangesCount != changeCount)
    }
  }

  /// Counts the caller's transaction as a commit of the engine, and wakes waiters after it.
  ///
  /// - Throws: as ``join(_:during:_:)``.
  func noteChange(in db: Database) throws(EngineError) {
    let operation = "noting a change"
    try requireTransaction(db, during: operation)
    try translatingErrors(during: "\(operation) in the caller's transaction") {
      try Self.countCommit(db)
    }
    notifier.announceChange()
  }

  private func requireTransaction(
    _ db: Database, during operation: String
  ) throws(EngineError) {
    try EngineError.requireArgument(
      db.isInsideTransaction, "\(operation): the connection has no open transaction",
      hint: "call it inside write of the engine")
    try EngineError.requireArgument(
      ObjectIdentifier(db) == writer, "\(operation): the connection is not of this engine",
      hint: "use the connection that write of this engine gives")
  }

  /// Stores messages in the order given, as a part of what a transaction publishes.
  ///
  /// The caller has checked them; ``Publication/finish()`` writes the sums. A message with a known
  /// deduplication id stores nothing and gets the timetoken of the first. After an error the caller
  /// must restore `publication`, except after a single message, which leaves it unchanged.
  func publish(
    _ messages: [Message], in publication: inout Publication?, _ db: Database
  ) throws -> [Timetoken] {
    var open = try publication.take() ?? Publication(self, db)
    defer { publication = open }
    let storedBefore = open.storedCount
    let timetokens = try messages.map { try open.store($0) }
    commitCounter?.note { $0.published += open.storedCount - storedBefore }
    return timetokens
  }

  /// Throws for messages that this engine does not accept.
  func check(_ messages: [Message]) throws(EngineError) {
    for (index, message) in messages.enumerated() {
      let which = messages.count == 1 ? "the message" : "message \(index + 1) of \(messages.count)"
      try message.check(configuration, as: which)
    }
  }
}
