internal import CSQLite
package import SystemPackage
package import VaultCrypto

/// A connection that has a database to itself: rollback journal, no log, EXCLUSIVE lock held.
///
/// It is taken before a change of key is decided, so that "busy" is said while nothing has changed.
/// The lock goes with the connection.
@safe package final class ExclusiveConnection {
  private let connection: OpaquePointer
  let path: FilePath
  private let registration: KeyRegistration

  /// The database's own file, on the sealed VFS.
  let file: MainFile

  /// Opens the database and keeps everyone else out.
  ///
  /// - Throws: `busy` when others are there; nothing is changed then but, at most, the journal mode.
  package init(
    to path: FilePath, key: borrowing SecretBytes, over base: String = "unix"
  ) throws(SealedFileError) {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.inspect(path, over: base).require(key: key, at: path, exists: true)
    let registration = try SealedVFS.register(key: key, at: path, over: base)
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOMUTEX
    let result = unsafe sqlite3_open_v2(full, &opened, flags, SealedVFS.name)
    guard result == SQLITE_OK, let connection = unsafe opened else {
      unsafe sqlite3_close_v2(opened)
      throw registration.explain(result, full)
    }
    do throws(SealedFileError) {
      try unsafe Self.takeOver(connection, full, registration)
      file = try unsafe Self.file(of: connection, full)
    } catch {
      unsafe sqlite3_close_v2(connection)
      throw error
    }
    unsafe self.connection = connection
    self.path = FilePath(full)
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
