internal import CSQLite
internal import SystemPackage

/// A connection that has a database to itself: rollback journal, no log, EXCLUSIVE lock held.
///
/// The lock goes with ``close()`` or when the connection goes.
@safe final class ExclusiveConnection {
  private let connection: OpaquePointer
  private let path: String
  private let registration: KeyRegistration

  /// The database's own file, on the sealed VFS.
  let file: MainFile

  /// Opens the database and keeps everyone else out.
  ///
  /// - Throws: `busy` when others are there; nothing is changed then but, at most, the journal mode.
  init(_ path: String, registration: KeyRegistration) throws(SealedFileError) {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOMUTEX
    let result = unsafe sqlite3_open_v2(path, &opened, flags, SealedVFS.name)
    guard result == SQLITE_OK, let connection = unsafe opened else {
      unsafe sqlite3_close_v2(opened)
      throw registration.explain(result, path)
    }
    do throws(SealedFileError) {
      try unsafe Self.takeOver(connection, path, registration)
      file = try unsafe Self.file(of: connection, path)
    } catch {
      unsafe sqlite3_close_v2(connection)
      throw error
    }
    unsafe self.connection = connection
    self.path = path
    self.registration = registration
  }

  deinit {
    unsafe sqlite3_close_v2(connection)
  }

  /// Leaves the log behind for good and takes the EXCLUSIVE lock.
  private static func takeOver(
    _ connection: OpaquePointer, _ path: String, _ registration: KeyRegistration
  ) throws(SealedFileError) {
    for sql in [
      "PRAGMA temp_store = MEMORY", "PRAGMA synchronous = FULL", "PRAGMA journal_mode = DELETE",
      "BEGIN EXCLUSIVE",
    ] {
      let result = unsafe sqlite3_exec(connection, sql, nil, nil, nil)
      guard result == SQLITE_OK else { throw registration.explain(result, path) }
    }
    // Where someone is still in the log, BEGIN EXCLUSIVE succeeds too, with the log's lock alone.
    var state: Int32 = 0
    _ = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_LOCKSTATE, &state)
    guard state == SQLITE_LOCK_EXCLUSIVE else { throw SealedFileError(.busy, path: path) }
  }

  private static func file(
    of connection: OpaquePointer, _ path: String
  ) throws(SealedFileError) -> MainFile {
    var memory: UnsafeMutablePointer<sqlite3_file>?
    _ = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &memory)
    guard let file = unsafe FileCallbacks.file(in: memory) as? MainFile else {
      throw SealedFileError(.notOnSealedVFS, path: path)
    }
    return file
  }
}

extension KeyRegistration {
  /// The reason for a result code: what the VFS recorded, or what the code says.
  func explain(_ result: Int32, _ path: String) -> SealedFileError {
    switch result & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED: return SealedFileError(.busy, path: path)
    case SQLITE_FULL: return SealedFileError(.diskFull, path: path)
    default:
      let words = unsafe sqlite3_errstr(result).map { unsafe String(cString: $0) }
      return fault ?? SealedFileError(.ioFailed, path: path, detail: words)
    }
  }
}
