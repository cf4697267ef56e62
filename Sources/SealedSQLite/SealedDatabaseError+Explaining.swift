public import GRDB
internal import SealedVFS

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
