internal import Glibc
public import GRDB
public import SealedVFS
internal import SystemPackage

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
  /// is explained. `init(explaining:on:)` explains the failure of one connection.
  ///
  /// - Parameter reader: a pool or queue of `SealedDatabase`. For any other, an error that the
  ///   file can have caused is explained as `notOnSealedVFS`.
  public init(explaining error: DatabaseError, in reader: any DatabaseReader) {
    let registration = OpenDatabases.registration(of: reader)
    self.init(
      error, path: reader.path, isSealed: registration != nil,
      fault: registration?.fault(reportedAs: error.reportedCode))
  }

  /// Explains a failed statement on this connection.
  ///
  /// Call it inside the database access, where the connection is available.
  public init(explaining error: DatabaseError, on db: Database) {
    let path = db.configuration.label ?? "the database"
    guard let connection = unsafe db.sqliteConnection,
      unsafe SealedConnection.vfsName(of: connection) == SealedVFS.name
    else {
      self.init(error, path: path, isSealed: false, fault: nil)
      return
    }
    let fault = unsafe SealedConnection.fault(of: connection, reportedAs: error.reportedCode)
    self.init(error, path: path, fault: fault)
  }

  /// Makes an error from one of SQLite's and the fault, if any, that the VFS found.
  ///
  /// GRDB's error holds the statement and its arguments. Only SQLite's code and message are kept,
  /// in the underlying error, too.
  ///
  /// - Parameter isSealed: whether the connection is on the sealed VFS.
  init(
    _ error: DatabaseError, path: String, isSealed: Bool = true, fault: SealedDatabaseError?
  ) {
    if let fault {
      self = fault
      return
    }
    if !isSealed, [.SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_CANTOPEN].contains(error.resultCode) {
      self.init(.notOnSealedVFS, path: path)
      return
    }
    let code: Code =
      switch error.resultCode {
      case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
      case .SQLITE_FULL: .diskFull
      case .SQLITE_CORRUPT, .SQLITE_NOTADB: .damaged
      case .SQLITE_READONLY: .readOnly
      case .SQLITE_CANTOPEN, .SQLITE_IOERR, .SQLITE_PERM: .inputOutput
      default: .sqlite
      }
    let directory = FilePath(path).removingLastComponent().string
    let isUnwritable = unsafe code == .readOnly && access(directory, W_OK) != 0
    let message = error.message ?? "SQLite error \(error.resultCode.rawValue)"
    let hint: String? =
      if Self.needsRecovery(error.extendedResultCode) {
        "open it for writing once, to finish the work of a killed writer"
      } else if isUnwritable {
        "SQLite writes its log and index beside a database, also to read it: give this user write "
          + "permission on \(directory), or read a copy in another directory"
      } else if error.resultCode == .SQLITE_CANTOPEN {
        "check the path and its permissions"
      } else {
        nil
      }
    self.init(
      code, path: path,
      detail: isUnwritable ? "this user cannot write its directory \(directory)" : message,
      hint: hint,
      underlying: DatabaseError(resultCode: error.extendedResultCode, message: error.message))
  }

  /// Whether a read-only connection found a journal or log that needs recovery by a writer.
  private static func needsRecovery(_ code: ResultCode) -> Bool {
    [.SQLITE_READONLY_RECOVERY, .SQLITE_READONLY_ROLLBACK, .SQLITE_READONLY_CANTINIT].contains(code)
  }
}

extension DatabaseError {
  /// SQLite's extended result code, which identifies the VFS's fault.
  var reportedCode: Int32 { extendedResultCode.rawValue }
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
