internal import CSQLite

/// A file of a database, open for reading on the underlying VFS.
///
/// A plain open(2) is not used: its close would release the locks that SQLite holds in this process
/// (POSIX locks; see os_unix.c). The file is never written or created.
@safe final class LockedInputFile {
  let path: String
  let base: BaseFile
  private let vfs: UnsafeMutablePointer<sqlite3_vfs>
  private let name: UnsafePointer<CChar>
  private let canLockExclusively: Bool
  /// Whether ``lockExclusively()`` has locked out all other connections.
  private(set) var isAlone = false

  /// Opens a file; returns nil if it does not exist.
  ///
  /// - Parameters:
  ///   - flags: those of xOpen. An exclusive lock needs `SQLITE_OPEN_READWRITE`.
  ///   - exists: whether there is one, though perhaps an empty one: "unix" says of an empty file that it is not there.
  init?(
    _ path: String, _ flags: Int32, over vfs: UnsafeMutablePointer<sqlite3_vfs>,
    exists: Bool = false
  ) throws(SealedDatabaseError) {
    if !exists {
      var isThere: Int32 = 0
      let result = unsafe vfs.pointee.xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &isThere)
      guard result == SQLITE_OK else { throw SealedDatabaseError(ResultCode(result), path: path) }
      if isThere == 0 { return nil }
    }
    if flags & SQLITE_OPEN_MAIN_DB == 0, unsafe BaseFile.isNoRegularFile(path) {
      throw .notRegularFile(path, of: path)
    }
    // Without a name, "unix" would open a temporary file.
    guard let name = unsafe sqlite3_create_filename(path, "", "", 0, nil) else {
      throw SealedDatabaseError(ResultCode(SQLITE_NOMEM), path: path)
    }
    unsafe self.name = name
    unsafe base = BaseFile(vfs)
    unsafe self.vfs = vfs
    self.path = path
    var granted: Int32 = 0
    let result = unsafe vfs.pointee.xOpen(vfs, name, base.pointer, flags, &granted)
    canLockExclusively = granted & SQLITE_OPEN_READWRITE != 0
    guard result == SQLITE_OK else {
      throw SealedDatabaseError(
        .inputOutput, path: path, detail: "it cannot be opened for reading",
        underlying: ResultCode(result))
    }
  }

  deinit {
    base.close()
    unsafe sqlite3_free_filename(name)
  }

  /// The super-journal that the end of this rollback journal names.
  func superJournal() throws(SealedDatabaseError) -> SuperJournal {
    try translating { () throws(ResultCode) in
      try unsafe SuperJournal(endOf: base, at: Array(path.utf8), on: vfs)
    }
  }

  /// Runs a call of the underlying VFS, and translates its error.
  private func translating<R>(
    _ step: () throws(ResultCode) -> R
  ) throws(SealedDatabaseError) -> R {
    do throws(ResultCode) {
      return try step()
    } catch {
      throw SealedDatabaseError(error, path: path)
    }
  }

  /// The length; 0 for a database that has only room for its header.
  func byteCount() throws(SealedDatabaseError) -> Int64 {
    try translating { () throws(ResultCode) in try base.sealedByteCount() }
  }

  /// Reads bytes that lie within the file; returns false on failure.
  ///
  /// Scans of damaged files use it: unreadable bytes count as damaged.
  func read(_ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64) -> Bool {
    do throws(ResultCode) {
      try unsafe base.read(target, byteCount, at: offset)
      return true
    } catch {
      return false
    }
  }

  /// Reads bytes that lie within the file, and throws each failure.
  func readAll(
    _ byteCount: Int, into target: UnsafeMutableRawPointer, at offset: Int64
  ) throws(SealedDatabaseError) {
    try translating { () throws(ResultCode) in
      try unsafe base.read(target, byteCount, at: offset)
    }
  }

  /// Reads bytes that are in the clear and lie within the file.
  func bytes(_ byteCount: Int, at offset: Int64) throws(SealedDatabaseError) -> [UInt8] {
    try translating { () throws(ResultCode) in try base.bytes(byteCount, at: offset) }
  }

  /// Locks out writers of a rollback-mode database, until the file is closed.
  func lockShared() throws(SealedDatabaseError) {
    try translating { () throws(ResultCode) in try base.lock(SQLITE_LOCK_SHARED) }
    if base.hasMoved { throw SealedDatabaseError(.fileReplaced, path: path) }
  }

  /// Locks out all other connections.
  ///
  /// A connection in WAL mode holds SHARED as long as it is open. It writes to log and database
  /// without any other lock on this file. A process that can only read the file keeps SHARED, which
  /// does not exclude such writers: no other connection must then be open.
  func lockExclusively() throws(SealedDatabaseError) {
    guard canLockExclusively else { return }
    do throws(SealedDatabaseError) {
      try translating { () throws(ResultCode) in try base.lock(SQLITE_LOCK_EXCLUSIVE) }
    } catch {
      try? base.unlock(SQLITE_LOCK_NONE)  // the failed lock is the error to report
      throw error
    }
    isAlone = true
  }

  /// Whether another connection is about to write; its journal is then not hot.
  func isReservedElsewhere() throws(SealedDatabaseError) -> Bool {
    if isAlone { return false }  // the reserved lock would be our own
    var answer: Int32 = 0
    try translating { () throws(ResultCode) in
      try unsafe ResultCode.require(base.checkReservedLock(&answer))
    }
    return answer != 0
  }
}
