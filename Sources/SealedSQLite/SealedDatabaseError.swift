public import GRDB
package import SealedVFS

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
    /// What was called a plain SQLite database is something else.
    public static let notPlainDatabase = Code(name: "notPlainDatabase")
    /// Page 1 does not open as one of SQLCipher 4: wrong passphrase or key, other settings, another
    /// kind of file, or damage; the format does not tell these apart.
    public static let wrongKeyOrNotSQLCipher = Code(name: "wrongKeyOrNotSQLCipher")
    /// A log or journal beside the database holds changes that the file alone lacks.
    public static let notClosed = Code(name: "notClosed")
    /// A later format version.
    public static let newerVersion = Code(name: "newerVersion")
    /// A page of the database or its log does not authenticate: ``SealedDatabaseError/pageNumber``.
    public static let damagedPage = Code(name: "damagedPage")
    /// The rollback journal does not authenticate, and the database needs it.
    public static let damagedJournal = Code(name: "damagedJournal")
    /// A log or a journal lies beside the database that was not written for a sealed one.
    public static let unrelatedCompanionFile = Code(name: "unrelatedCompanionFile")
    /// The pages authenticate, and what they hold contradicts itself.
    public static let damaged = Code(name: "damaged")
    /// The file ends before its last page.
    public static let truncated = Code(name: "truncated")
    /// The connection does not go through the sealed VFS; nothing was read or written.
    public static let notOnSealedVFS = Code(name: "notOnSealedVFS")
    /// Another connection is in the way.
    public static let busy = Code(name: "busy")
    /// A file in the making is not this user's alone: another user made it, or could have.
    public static let foreignFile = Code(name: "foreignFile")
    /// The database or its directory may not be written.
    public static let readOnly = Code(name: "readOnly")
    /// A change of key to the key that the database has.
    public static let sameKey = Code(name: "sameKey")
    /// The disk is full.
    public static let diskFull = Code(name: "diskFull")
    /// There is no database, and none was to be made.
    public static let absent = Code(name: "absent")
    /// There is something where a new file was to be made; it is left alone.
    public static let alreadyExists = Code(name: "alreadyExists")
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
  /// The damaged or missing page, from 1; nil for other failures, and where it is not known.
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

/// From what the VFS found and what SQLite reported.
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

/// What an error of GRDB means that an application meets in the middle of its work.
///
/// SQLite knows a few result codes; what the sealed VFS found is kept beside them, for each
/// connection, and found again by the code that SQLite reported.
extension SealedDatabaseError {
  /// What is really wrong where a read or a write on a pool or queue failed.
  ///
  ///     do {
  ///       try pool.read { db in … }
  ///     } catch let error as DatabaseError {
  ///       let reason = SealedDatabaseError(explaining: error, in: pool)
  ///       if reason.code == .damagedPage { report(reason.pageNumber) }
  ///     }
  ///
  /// Where connections of one pool fail in the same way at the same time, the newest is named:
  /// ``init(explaining:on:)`` asks the one connection.
  ///
  /// - Parameter reader: a pool or queue of ``SealedDatabase``; of any other, an error that the file
  ///   may be to blame for is explained as ``Code/notOnSealedVFS``.
  public init(explaining error: DatabaseError, in reader: any DatabaseReader) {
    guard let registration = OpenDatabases.registration(of: reader) else {
      self.init(error, unsealed: reader.path)
      return
    }
    self.init(
      error, path: reader.path, fault: registration.fault(reportedAs: error.reportedCode))
  }

  /// What is really wrong where a statement on this connection failed.
  ///
  /// Call it inside the database access, where the connection is at hand.
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

  /// An error on a connection that is not on our VFS.
  private init(_ error: DatabaseError, unsealed path: String) {
    switch error.resultCode {
    case .SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_CANTOPEN: self = .notOnSealedVFS(path)
    default: self.init(error, path: path, fault: nil)
    }
  }
}

extension DatabaseReader {
  /// The path that messages name.
  fileprivate var path: String {
    switch self {
    case let pool as DatabasePool: pool.path
    case let queue as DatabaseQueue: queue.path
    default: configuration.label ?? "the database"
    }
  }
}
