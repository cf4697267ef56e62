internal import GRDB
internal import SealedVFS

/// Why a sealed database could not be opened or used.
public struct SealedDatabaseError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Sendable, Hashable {
    let name: String

    /// The key belongs to another database, or to this one before a change of key.
    public static let wrongKey = Code(name: "wrongKey")
    /// A plain SQLite database lies there.
    public static let plainDatabase = Code(name: "plainDatabase")
    /// Something else than a database lies there.
    public static let notSealed = Code(name: "notSealed")
    /// A later format version.
    public static let newerVersion = Code(name: "newerVersion")
    /// A page, the log or the journal does not authenticate, or its contents contradict themselves.
    public static let damaged = Code(name: "damaged")
    /// The file ends before its last page.
    public static let truncated = Code(name: "truncated")
    /// The connection does not go through the sealed VFS; nothing was read or written.
    public static let notOnSealedVFS = Code(name: "notOnSealedVFS")
    /// Another connection is in the way.
    public static let busy = Code(name: "busy")
    /// The disk is full.
    public static let diskFull = Code(name: "diskFull")
    /// There is no database, and none was to be made.
    public static let absent = Code(name: "absent")
    /// The database was replaced while it was open.
    public static let moved = Code(name: "moved")
    /// The system failed to read or write.
    public static let inputOutput = Code(name: "inputOutput")
    /// A setting did not take effect when it was read back.
    public static let settingRefused = Code(name: "settingRefused")
    /// A key that does not have 32 bytes, or another argument that cannot be used.
    public static let invalidArgument = Code(name: "invalidArgument")
    /// SQLite failed for a reason that is not the file's.
    public static let sqlite = Code(name: "sqlite")
  }

  /// What kind of failure.
  public let code: Code
  /// One line: what and where; never a key or a plaintext.
  public let message: String
  /// What to do next, where that is known.
  public let hint: String?
  /// SQLite's or the VFS's own error.
  public let underlying: (any Error)?

  init(_ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
  }

  /// The message.
  public var description: String { message }
}

extension SealedDatabaseError {
  private static let codes: [SealedFileError.Code: Code] = [
    .wrongKey: .wrongKey, .notSealed: .notSealed, .plainDatabase: .plainDatabase,
    .newerVersion: .newerVersion, .damagedPage: .damaged, .damagedJournal: .damaged,
    .foreignSibling: .notSealed, .truncated: .truncated, .moved: .moved, .busy: .busy,
    .notOnSealedVFS: .notOnSealedVFS, .absent: .absent, .diskFull: .diskFull,
    .ioFailed: .inputOutput, .reserveInUse: .damaged, .invalidArgument: .invalidArgument,
  ]

  /// What the VFS found.
  init(_ error: SealedFileError) {
    self.init(
      Self.codes[error.code] ?? .inputOutput, error.description, hint: error.hint,
      underlying: error)
  }

  /// What SQLite reported, made precise by what the VFS recorded for this database.
  ///
  /// GRDB's error holds the statement and its arguments: only SQLite's code and message are kept, in
  /// the error beneath too.
  init(_ error: DatabaseError, path: String, fault: SealedFileError?) {
    if let fault, Self.isTheFilesFault(error.resultCode) {
      self.init(fault)
      return
    }
    let message = "\(path): \(error.message ?? "SQLite error \(error.resultCode.rawValue)")"
    let (code, hint): (Code, String?) =
      switch error.resultCode {
      case .SQLITE_BUSY, .SQLITE_LOCKED: (.busy, "close it elsewhere, or try again")
      case .SQLITE_FULL: (.diskFull, "free some space")
      case .SQLITE_CORRUPT, .SQLITE_NOTADB: (.damaged, nil)
      case .SQLITE_CANTOPEN: (.inputOutput, "look at the path and its permissions")
      case .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_PERM: (.inputOutput, nil)
      default: (.sqlite, nil)
      }
    self.init(
      code, message, hint: hint,
      underlying: DatabaseError(resultCode: error.extendedResultCode, message: error.message))
  }

  /// Whether a result code can come from what the VFS found in the files.
  private static func isTheFilesFault(_ code: ResultCode) -> Bool {
    [.SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_READONLY]
      .contains(code)
  }
}
