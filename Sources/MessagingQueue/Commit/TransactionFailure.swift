internal import GRDB

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
