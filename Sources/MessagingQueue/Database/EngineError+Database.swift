internal import GRDB

extension EngineError {
  static let engineRowMissing = EngineError(
    .damaged, "the message database has lost its state row",
    hint: "restore the home directory from a backup")

  /// The successor of a number in the engine's row, which counts boots or commits.
  static func following(_ number: Int64, _ what: String) throws(EngineError) -> Int64 {
    guard (0..<EngineSchema.counts.upperBound).contains(number) else {
      throw EngineError(
        .damaged, "the message database has the \(what) number \(number), after which none comes",
        hint: "run datavault queue verify; datavault queue salvage corrects it")
    }
    return number + 1
  }

  /// The error for a failure of GRDB or SQLite.
  ///
  /// It leaves out SQLite's message and the statement with its arguments, also in the underlying
  /// error: these can quote the data that was being stored.
  package init(translating error: any Error, during operation: String) {
    switch error {
    case let error as EngineError:
      self = error
    case let error as DatabaseError:
      self.init(error, during: operation)
    case TransactionFailure.committing(let error as DatabaseError)
    where [.SQLITE_IOERR, .SQLITE_NOMEM].contains(error.resultCode):
      self.init(
        .outcomeUnknown,
        "\(operation): the commit failed while it was written; whether it is on the disk is unknown",
        hint:
          "look at the system's log for errors of the disk, and retry with the deduplication id",
        underlying: DatabaseError(resultCode: error.extendedResultCode))
    case TransactionFailure.beginning(let error), TransactionFailure.working(let error),
      TransactionFailure.committing(let error):
      self.init(translating: error, during: operation)
    default:
      self.init(
        .inputOutput, "\(operation) failed",
        hint: "look at the error beneath, and at the system's log", underlying: error)
    }
  }

  static let damageHint = "keep the files as they are and restore a backup"

  static let noTableOfMessages = EngineError(
    .damaged, "the damaged database lacks the table of messages or that of channels",
    hint: damageHint)

  /// `SQLITE_IOERR_DATA`: the sealed VFS returns it for a page that it cannot authenticate.
  private static let damagedPage: Int32 = 10 | 32 << 8

  /// `SQLITE_READONLY_DBMOVED`: the sealed VFS returns it after another file took the database's place.
  private static let replacedFile: Int32 = 8 | 4 << 8

  private init(_ error: DatabaseError, during operation: String) {
    let underlying = DatabaseError(resultCode: error.extendedResultCode)
    let code = error.extendedResultCode.rawValue
    switch error.resultCode {
    case .SQLITE_IOERR where code == Self.damagedPage:
      self.init(
        .damaged, "\(operation): a page of the message database is damaged",
        hint: Self.damageHint, underlying: underlying)
    case .SQLITE_READONLY where code == Self.replacedFile:
      self.init(
        .inputOutput,
        "\(operation): the database was replaced while it was open; nothing was changed",
        hint: "find out who replaced the file, then restart this program", underlying: underlying)
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self.init(
        .busy, "\(operation): another process holds the message database; nothing was changed",
        hint: "try again", underlying: underlying)
    case .SQLITE_FULL:
      self.init(
        .diskFull, "\(operation): the disk is full; nothing was changed",
        hint: "make room on the file system of the home directory", underlying: underlying)
    case .SQLITE_READONLY, .SQLITE_PERM:
      self.init(
        .readOnly, "\(operation): the message database cannot be written",
        hint: "check the owner and the permissions of the home directory", underlying: underlying)
    case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH:
      self.init(
        .damaged, "\(operation): the message database is damaged (SQLite code \(code))",
        hint: Self.damageHint, underlying: underlying)
    default:
      self.init(
        .inputOutput, "\(operation): the message database failed (SQLite code \(code))",
        hint: "look at the system's log for errors of the disk", underlying: underlying)
    }
  }
}

/// Runs `body` and throws its failure as an ``EngineError``.
func translatingErrors<Result>(
  during operation: String, _ body: () throws -> Result
) throws(EngineError) -> Result {
  do {
    return try body()
  } catch {
    throw EngineError(translating: error, during: operation)
  }
}
