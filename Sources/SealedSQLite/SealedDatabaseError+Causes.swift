internal import GRDB
package import SealedVFS

/// From what the VFS found and what SQLite reported.
extension SealedDatabaseError {
  private static let codes: [SealedFileError.Code: Code] = [
    .wrongKey: .wrongKey, .notSealed: .notSealed, .plainDatabase: .plainDatabase,
    .newerVersion: .newerVersion, .damagedPage: .damagedPage, .damagedJournal: .damagedJournal,
    .foreignSibling: .foreignSibling, .truncated: .truncated, .moved: .moved, .busy: .busy,
    .notOnSealedVFS: .notOnSealedVFS, .absent: .absent, .readOnly: .readOnly, .sameKey: .sameKey,
    .diskFull: .diskFull, .ioFailed: .inputOutput, .reserveInUse: .damaged,
    .invalidArgument: .invalidArgument, .keyInText: .invalidArgument,
    .keyNotNamed: .invalidArgument, .keyFileRefused: .invalidArgument,
    .wrongKeyOrNotSQLCipher: .wrongKeyOrNotSQLCipher, .notClosed: .notClosed,
    .alreadyExists: .alreadyExists, .notPlainDatabase: .notPlainDatabase, .malformed: .damaged,
    .vacuumTargetRefused: .invalidArgument, .sqliteFailed: .sqlite, .notDatabaseFile: .notSealed,
    .foreignFile: .foreignFile,
  ]

  /// What the VFS found.
  package init(_ error: SealedFileError) {
    self.init(
      Self.codes[error.code] ?? .inputOutput, error.description, hint: error.hint,
      underlying: error, pageNumber: error.pageNumber.map(Int.init))
  }

  /// What SQLite reported, made precise by what the VFS found, where it found something.
  ///
  /// GRDB's error holds the statement and its arguments: only SQLite's code and message are kept, in
  /// the error beneath too.
  init(_ error: DatabaseError, path: String, fault: SealedFileError?) {
    if let fault {
      self.init(fault)
      return
    }
    let message = "\(path): \(error.message ?? "SQLite error \(error.resultCode.rawValue)")"
    let (code, hint): (Code, String?) =
      switch error.resultCode {
      case .SQLITE_BUSY, .SQLITE_LOCKED: (.busy, "close it elsewhere, or try again")
      case .SQLITE_FULL: (.diskFull, "free some space")
      case .SQLITE_CORRUPT, .SQLITE_NOTADB:
        (.damaged, "look at it with a verification of its pages")
      case .SQLITE_READONLY where Self.needsRecovery(error.extendedResultCode):
        (.readOnly, "a killed writer left work to finish: open it for writing once")
      case .SQLITE_READONLY: (.readOnly, "look at the permissions of the file and its directory")
      case .SQLITE_CANTOPEN: (.inputOutput, "look at the path and its permissions")
      case .SQLITE_IOERR, .SQLITE_PERM: (.inputOutput, nil)
      default: (.sqlite, nil)
      }
    self.init(
      code, message, hint: hint,
      underlying: DatabaseError(resultCode: error.extendedResultCode, message: error.message))
  }

  /// Whether a connection that only reads met a journal or a log that needs a writer.
  private static func needsRecovery(_ code: ResultCode) -> Bool {
    [.SQLITE_READONLY_RECOVERY, .SQLITE_READONLY_ROLLBACK, .SQLITE_READONLY_CANTINIT].contains(code)
  }

  static func notOnSealedVFS(_ path: String) -> SealedDatabaseError {
    SealedDatabaseError(
      .notOnSealedVFS, "\(path): the connection is not on the sealed VFS",
      hint: "open it with SealedDatabase.openPool; one process must hold one SQLite library")
  }
}

extension DatabaseError {
  /// SQLite's extended result code, by which the VFS tells its faults apart.
  var reportedCode: Int32 { extendedResultCode.rawValue }
}
