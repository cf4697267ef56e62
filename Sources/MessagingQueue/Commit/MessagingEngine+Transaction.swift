internal import FileLayer
public import GRDB

extension MessagingEngine {
  /// The encrypted database, for tables of the caller's own beside the engine's.
  ///
  ///     try await engine.database.write { db in
  ///       try db.execute(sql: "INSERT INTO invoice (number) VALUES (?)", arguments: [17])
  ///       try engine.publish(Message(channel: invoices, payload: bytes), in: db)
  ///     }
  ///
  /// Both are committed, or neither is; after `write` returns they are on the disk. The caller's
  /// transactions and the engine's own take turns. Give your tables names that differ from the
  /// engine's (`docs/explanation/queue-semantics.md` lists them), and do not change the engine's. ``stop()``
  /// closes the database: end your own reads before it. A read that begins while GRDB closes its
  /// pool is undefined and can crash the process.
  public var database: any DatabaseWriter { tables.pool }

  /// Publishes one message in the caller's transaction: both are committed, or neither is.
  ///
  /// - Throws: the errors of ``publish(_:in:)-([Message],_)``.
  @discardableResult
  public func publish(
    _ message: Message, in db: Database
  ) throws(EngineError) -> Timetoken {
    try publish([message], in: db)[0]
  }

  /// Publishes messages, all or none, in the caller's transaction: both are committed, or neither
  /// is.
  ///
  /// Receivers get the messages only after the commit, which wakes them. A commit that fails throws
  /// GRDB's error where the transaction ends; after an I/O error its outcome is unknown, as with
  /// ``EngineError/Code/outcomeUnknown``.
  ///
  /// - Parameter db: a writing connection of ``database``, inside a transaction.
  /// - Throws: `invalidArgument` outside a transaction; `payloadTooLarge`, `diskFull`, `stopped`,
  ///   `vaultLocked`, `damaged`, `inputOutput`. After an error none of the messages is published,
  ///   whether the transaction commits or not.
  @discardableResult
  public func publish(
    _ messages: [Message], in db: Database
  ) throws(EngineError) -> [Timetoken] {
    let timetokens = try running().tables.publish(messages, in: db)
    if !timetokens.isEmpty { db.afterNextTransaction { [didCommit] _ in didCommit() } }
    return timetokens
  }
}

/// The step at which a transaction failed, with its error.
///
/// It tells whether changes can be on the disk. Only a COMMIT that met an I/O error or ran out of
/// memory leaves that open. Its last frame is then possibly written whole, and a start after a
/// crash would find it.
enum TransactionFailure: Error {
  /// The write lock was not available.
  case beginning(any Error)
  /// A statement failed, and the transaction was rolled back.
  case working(any Error)
  /// The COMMIT failed.
  case committing(any Error)
}

extension EngineError {
  init(_ failure: TransactionFailure, during operation: String) {
    switch failure {
    case .beginning(let error), .working(let error):
      self.init(translating: error, during: operation)
    case .committing(let error):
      if let error = error as? DatabaseError,
        [.SQLITE_IOERR, .SQLITE_NOMEM].contains(error.resultCode)
      {
        self.init(
          .outcomeUnknown,
          "\(operation): the commit failed while it was written; whether it is on the disk is unknown",
          hint:
            "look at the system's log for errors of the disk, and retry with the deduplication id",
          underlying: DatabaseError(resultCode: error.extendedResultCode))
      } else {
        self.init(translating: error, during: operation)
      }
    }
  }
}

extension Database {
  /// Runs `body` with the write lock, which it takes first and always releases.
  ///
  /// It works like GRDB's `inTransaction(.immediate)`, but with cached statements: compiling them
  /// takes longer than running them.
  func inImmediateTransaction<Result>(
    _ body: () throws -> Result
  ) throws(TransactionFailure) -> Result {
    do {
      try cachedStatement(sql: "BEGIN IMMEDIATE TRANSACTION").execute()
    } catch {
      throw .beginning(error)
    }
    let result: Result
    do {
      result = try body()
    } catch {
      try? rollback()
      throw .working(error)
    }
    do {
      try cachedStatement(sql: "COMMIT TRANSACTION").execute()
    } catch {
      try? rollback()
      throw .committing(error)
    }
    return result
  }
}
