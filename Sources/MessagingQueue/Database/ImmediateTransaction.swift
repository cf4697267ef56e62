internal import GRDB

/// The step at which a transaction failed, with its error.
///
/// It tells whether changes can be on the disk. Only a COMMIT that met an I/O error or ran out of
/// memory leaves that open. Its last frame is then possibly written whole, and a start after a
/// crash would find it.
enum TransactionFailure: Error {
  /// The write lock was not available, or SQLite does not sync as the commit needs.
  case beginning(any Error)
  /// A statement failed, and the transaction was rolled back.
  case working(any Error)
  /// The COMMIT failed.
  case committing(any Error)
}

extension Database {
  /// Runs `body` with the write lock, which it takes first and always releases.
  ///
  /// It works like GRDB's `inTransaction(.immediate)`, but with cached statements: compiling them
  /// takes longer than running them.
  ///
  /// - Parameter isDurable: whether the commit is synchronized. If it is not, it is durable with the next that is.
  func inImmediateTransaction<Result>(
    isDurable: Bool = true, _ body: () throws -> Result
  ) throws(TransactionFailure) -> Result {
    // Each transaction says what it needs: the connection can be left as another one needed it.
    do {
      try execute(sql: "PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
    } catch {
      throw .beginning(error)
    }
    // For who writes by other means.
    defer { if !isDurable { try? execute(sql: "PRAGMA synchronous = FULL") } }
    return try inTransaction(body)
  }

  private func inTransaction<Result>(
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
