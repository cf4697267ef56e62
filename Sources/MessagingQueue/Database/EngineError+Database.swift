internal import GRDB

extension EngineError {
  static let engineRowMissing = EngineError(
    .damaged, "the message database has lost its state row",
    hint: "restore the home directory from a backup")

  /// Says what an error of GRDB or SQLite means to the engine's caller.
  ///
  /// SQLite's message and the statement with its arguments are left out, of the error beneath too:
  /// they can quote what was being stored.
  init(translating error: any Error, during operation: String) {
    switch error {
    case let error as EngineError:
      self = error
    case let error as DatabaseError:
      self.init(
        resultCode: error.resultCode, during: operation,
        underlying: DatabaseError(resultCode: error.extendedResultCode))
    default:
      self.init(
        .inputOutput, "\(operation) failed",
        hint: "look at the error beneath, and at the system's log", underlying: error)
    }
  }

  static let damageHint = "keep the files as they are and restore a backup"

  /// `SQLITE_IOERR_DATA`: the sealed VFS answers it for what it cannot authenticate.
  private static let damagedPage: Int32 = 10 | 32 << 8

  private init(resultCode: ResultCode, during operation: String, underlying: DatabaseError) {
    let code = underlying.extendedResultCode.rawValue
    switch resultCode {
    case .SQLITE_IOERR where code == Self.damagedPage:
      self.init(
        .damaged, "\(operation): a page of the message database is damaged",
        hint: Self.damageHint, underlying: underlying)
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
        .readOnly, "\(operation): the message database may not be written",
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

/// Runs `body` and speaks of its failure in the engine's terms.
func translatingErrors<Result>(
  during operation: String, _ body: () throws -> Result
) throws(EngineError) -> Result {
  do {
    return try body()
  } catch {
    throw EngineError(translating: error, during: operation)
  }
}
