internal import Glibc
public import GRDB
package import SealedVFS
internal import SystemPackage

/// An error in opening or using a sealed database.
public struct SealedDatabaseError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; later versions can add more.
  public struct Code: Sendable, Hashable {
    let name: String

    /// The key belongs to another database, or is from before a key change.
    public static let wrongKey = Code(name: "wrongKey")
    /// The file is a plain SQLite database.
    public static let plainDatabase = Code(name: "plainDatabase")
    /// The file is not a database.
    public static let notSealed = Code(name: "notSealed")
    /// The file given as a plain SQLite database is not one.
    public static let notPlainDatabase = Code(name: "notPlainDatabase")
    /// Page 1 does not open as one of SQLCipher 4.
    ///
    /// The passphrase or key is wrong, or the file has other settings, is of another kind, or is
    /// damaged. The format cannot tell these apart.
    public static let wrongKeyOrNotSQLCipher = Code(name: "wrongKeyOrNotSQLCipher")
    /// A log or journal beside the database holds changes that the file alone lacks.
    public static let notClosed = Code(name: "notClosed")
    /// The file has a later version of the format.
    public static let newerVersion = Code(name: "newerVersion")
    /// A page of the database or its log does not authenticate: ``SealedDatabaseError/pageNumber``.
    public static let damagedPage = Code(name: "damagedPage")
    /// The rollback journal does not authenticate, and the database needs it.
    public static let damagedJournal = Code(name: "damagedJournal")
    /// The log or journal beside the database was not written for a sealed database.
    public static let unrelatedCompanionFile = Code(name: "unrelatedCompanionFile")
    /// The pages authenticate, but their contents contradict each other.
    public static let damaged = Code(name: "damaged")
    /// The file ends before its last page.
    public static let truncated = Code(name: "truncated")
    /// The connection does not use the sealed VFS; nothing was read or written.
    public static let notOnSealedVFS = Code(name: "notOnSealedVFS")
    /// Another connection is using the database.
    public static let busy = Code(name: "busy")
    /// Another user made a temporary file, or could have made it.
    public static let foreignFile = Code(name: "foreignFile")
    /// This process cannot write the database or its directory.
    public static let readOnly = Code(name: "readOnly")
    /// The new key of a key change is the present key.
    public static let sameKey = Code(name: "sameKey")
    /// The disk is full.
    public static let diskFull = Code(name: "diskFull")
    /// There is no database, and the call must not create one.
    public static let absent = Code(name: "absent")
    /// A file exists at the path of the new file; it is not changed.
    public static let alreadyExists = Code(name: "alreadyExists")
    /// The database was replaced while it was open.
    public static let moved = Code(name: "moved")
    /// The system failed to read or write.
    public static let inputOutput = Code(name: "inputOutput")
    /// A setting did not read back as it was set.
    public static let settingRefused = Code(name: "settingRefused")
    /// A key that does not have 32 bytes, or another argument that cannot be used.
    public static let invalidArgument = Code(name: "invalidArgument")
    /// SQLite failed for a reason other than the file.
    public static let sqlite = Code(name: "sqlite")
  }

  /// The kind of failure.
  public let code: Code
  /// One line with the path and the failure; it never contains a key or a plaintext.
  public let message: String
  /// The next step, if one is known.
  public let hint: String?
  /// SQLite's or the VFS's own error.
  public let underlying: (any Error)?
  /// The damaged or missing page, from 1; nil for other failures, and if the page is unknown.
  public let pageNumber: Int?

  init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil,
    pageNumber: Int? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
    self.pageNumber = pageNumber
  }

  /// The message.
  public var description: String { message }
}

/// Conversions of the errors of the VFS and of SQLite.
extension SealedDatabaseError {
  private static let codes: [SealedFileError.Code: Code] = [
    .wrongKey: .wrongKey, .notSealed: .notSealed, .plainDatabase: .plainDatabase,
    .newerVersion: .newerVersion, .damagedPage: .damagedPage, .damagedJournal: .damagedJournal,
    .unrelatedCompanionFile: .unrelatedCompanionFile, .truncated: .truncated, .moved: .moved,
    .busy: .busy,
    .notOnSealedVFS: .notOnSealedVFS, .absent: .absent, .readOnly: .readOnly, .sameKey: .sameKey,
    .diskFull: .diskFull, .ioFailed: .inputOutput, .reserveInUse: .damaged,
    .invalidArgument: .invalidArgument, .keyInText: .invalidArgument,
    .keyNotNamed: .invalidArgument, .keyFileRefused: .invalidArgument,
    .wrongKeyOrNotSQLCipher: .wrongKeyOrNotSQLCipher, .notClosed: .notClosed,
    .alreadyExists: .alreadyExists, .notPlainDatabase: .notPlainDatabase, .malformed: .damaged,
    .vacuumTargetRefused: .invalidArgument, .sqliteFailed: .sqlite, .notDatabaseFile: .notSealed,
    .foreignFile: .foreignFile,
  ]

  /// Makes an error from a fault that the VFS found.
  package init(_ error: SealedFileError) {
    self.init(
      Self.codes[error.code] ?? .inputOutput, error.description, hint: error.hint,
      underlying: error, pageNumber: error.pageNumber.map(Int.init))
  }

  /// Makes an error from one of SQLite's and the fault, if any, that the VFS found.
  ///
  /// GRDB's error holds the statement and its arguments. Only SQLite's code and message are kept,
  /// in the underlying error, too.
  init(_ error: DatabaseError, path: String, fault: SealedFileError?) {
    if let fault {
      self.init(fault)
      return
    }
    let directory = FilePath(path).removingLastComponent().string
    let isUnwritable = error.resultCode == .SQLITE_READONLY && !Self.canWrite(directory)
    let words = error.message ?? "SQLite error \(error.resultCode.rawValue)"
    let message =
      "\(path): " + (isUnwritable ? "this user cannot write its directory \(directory)" : words)
    let (code, hint): (Code, String?) =
      switch error.resultCode {
      case .SQLITE_BUSY, .SQLITE_LOCKED: (.busy, "close it in all other programs, or try again")
      case .SQLITE_FULL: (.diskFull, "free some space")
      case .SQLITE_CORRUPT, .SQLITE_NOTADB:
        (.damaged, "verify the database")
      case .SQLITE_READONLY where Self.needsRecovery(error.extendedResultCode):
        (.readOnly, "open it for writing once, to finish the work of a killed writer")
      case .SQLITE_READONLY where isUnwritable:
        (
          .readOnly,
          "SQLite writes its log and index beside a database, also to read it: give this user write "
            + "permission on \(directory), or read a copy in another directory"
        )
      case .SQLITE_READONLY: (.readOnly, "check the permissions of the file and its directory")
      case .SQLITE_CANTOPEN: (.inputOutput, "check the path and its permissions")
      case .SQLITE_IOERR, .SQLITE_PERM: (.inputOutput, nil)
      default: (.sqlite, nil)
      }
    self.init(
      code, message, hint: hint,
      underlying: DatabaseError(resultCode: error.extendedResultCode, message: error.message))
  }

  private static func canWrite(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }

  /// Whether a read-only connection found a journal or log that needs recovery by a writer.
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
  /// SQLite's extended result code, which identifies the VFS's fault.
  var reportedCode: Int32 { extendedResultCode.rawValue }
}

/// Explanations of GRDB's errors, for an application that meets one in the middle of its work.
///
/// SQLite has only a few result codes. The sealed VFS keeps its faults beside them, for each
/// connection, and finds the fault again by the code that SQLite reported.
extension SealedDatabaseError {
  /// Explains a failed read or write on a pool or queue.
  ///
  ///     do {
  ///       try pool.read { db in … }
  ///     } catch let error as DatabaseError {
  ///       let reason = SealedDatabaseError(explaining: error, in: pool)
  ///       if reason.code == .damagedPage { report(reason.pageNumber) }
  ///     }
  ///
  /// If several connections of one pool fail in the same way at the same time, the newest failure
  /// is explained. ``init(explaining:on:)`` explains the failure of one connection.
  ///
  /// - Parameter reader: a pool or queue of ``SealedDatabase``. For any other, an error that the
  ///   file can have caused is explained as ``Code/notOnSealedVFS``.
  public init(explaining error: DatabaseError, in reader: any DatabaseReader) {
    guard let registration = OpenDatabases.registration(of: reader) else {
      self.init(error, unsealed: reader.path)
      return
    }
    self.init(
      error, path: reader.path, fault: registration.fault(reportedAs: error.reportedCode))
  }

  /// Explains a failed statement on this connection.
  ///
  /// Call it inside the database access, where the connection is available.
  public init(explaining error: DatabaseError, on db: Database) {
    let path = db.configuration.label ?? "the database"
    guard let connection = unsafe db.sqliteConnection,
      unsafe SealedConnection.vfsName(of: connection) == SealedVFS.name
    else {
      self.init(error, unsealed: path)
      return
    }
    let fault = unsafe SealedConnection.fault(of: connection, reportedAs: error.reportedCode)
    self.init(error, path: path, fault: fault)
  }

  /// Makes an error for a connection that is not on the sealed VFS.
  private init(_ error: DatabaseError, unsealed path: String) {
    switch error.resultCode {
    case .SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_CANTOPEN: self = .notOnSealedVFS(path)
    default: self.init(error, path: path, fault: nil)
    }
  }
}

extension DatabaseReader {
  /// The path to name in messages.
  fileprivate var path: String {
    switch self {
    case let pool as DatabasePool: pool.path
    case let queue as DatabaseQueue: queue.path
    default: configuration.label ?? "the database"
    }
  }
}
