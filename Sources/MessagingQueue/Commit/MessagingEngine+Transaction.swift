internal import FileLayer
public import GRDB

/// The engine's work as a part of the caller's own.
extension MessagingEngine {
  /// The encrypted database, for tables of the caller's own beside the engine's.
  ///
  ///     try await engine.database.write { db in
  ///       try db.execute(sql: "INSERT INTO invoice (number) VALUES (?)", arguments: [17])
  ///       try engine.publish(Message(channel: invoices, payload: bytes), in: db)
  ///     }
  ///
  /// Both are committed, or neither is; once `write` has returned they are on the disk. The
  /// transactions of the writer and the engine's own take turns. Give tables names that do not collide
  /// with the engine's (`docs/explanation/queue-semantics.md` lists them), and leave those alone. ``stop()`` closes the
  /// database: end reads of your own before it. One that begins while GRDB closes its pool is undefined, and
  /// can end the process.
  public nonisolated var database: any DatabaseWriter { tables.pool }

  /// Publishes one message in the caller's transaction: it is committed with it, or not at all.
  ///
  /// - Throws: as ``publish(_:in:)-([Message],_)``.
  @discardableResult
  public nonisolated func publish(
    _ message: Message, in db: Database
  ) throws(EngineError) -> Timetoken {
    try publish([message], in: db)[0]
  }

  /// Publishes messages, all or none, in the caller's transaction: they are committed with it, or not
  /// at all.
  ///
  /// Nobody receives them, nor is woken, before that. A commit that fails throws GRDB's error where
  /// the transaction ends; after an I/O error its outcome is unknown, as with
  /// ``EngineError/Code/outcomeUnknown``.
  ///
  /// - Parameter db: a connection of ``database`` that may write, inside a transaction.
  /// - Throws: `invalidArgument` outside a transaction; `payloadTooLarge`, `diskFull`, `stopped`,
  ///   `vaultLocked`, `damaged`, `inputOutput`: none of them is published then, whatever becomes of the
  ///   transaction.
  @discardableResult
  public nonisolated func publish(
    _ messages: [Message], in db: Database
  ) throws(EngineError) -> [Timetoken] {
    let timetokens = try running().tables.publish(messages, in: db)
    if !timetokens.isEmpty { db.afterNextTransaction { [didCommit] _ in didCommit() } }
    return timetokens
  }
}

/// At which point a transaction failed, and with what.
///
/// It tells whether anything can be on the disk: only a COMMIT that met an I/O error, or had no memory left,
/// leaves that open, because the last frame may have been written whole, and a crash from then on would
/// find it.
enum TransactionFailure: Error {
  /// The write lock was not to be had.
  case beginning(any Error)
  /// Something in it failed, and it was rolled back.
  case working(any Error)
  /// Its COMMIT failed.
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
  /// Takes the write lock at once, and gives it back whatever happens.
  ///
  /// As GRDB's `inTransaction(.immediate)`, with statements that are kept: compiling them anew takes longer than
  /// they do.
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
