/// An open file on this VFS, and the default behaviour of SQLite's calls on it.
///
/// The subclasses are ``SealedFile``, whose key is registered, and ``TemporaryFile``, which has its
/// own key. SQLite calls a file from one thread at a time.
class OpenFile {
  let base: BaseFile

  init(base: BaseFile) {
    self.base = base
  }

  func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    throw ResultCode(SQLITE_IOERR_READ)
  }

  func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    throw ResultCode(SQLITE_IOERR_WRITE)
  }

  func truncate(to byteCount: Int64) throws(ResultCode) { try base.truncate(to: byteCount) }

  func synchronize(_ flags: Int32) throws(ResultCode) { try base.synchronize(flags) }

  /// Maps a region of the log's index; only a database file has one.
  func mapShared(
    _ region: Int32, _ byteCount: Int32, _ isExtending: Int32,
    _ target: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) throws(ResultCode) {
    try unsafe base.mapShared(region, byteCount, isExtending, target)
  }

  func byteCount() throws(ResultCode) -> Int64 { try base.byteCount() }

  func lock(_ level: Int32) throws(ResultCode) { try base.lock(level) }

  func unlock(_ level: Int32) throws(ResultCode) { try base.unlock(level) }

  func lockShared(_ offset: Int32, _ count: Int32, _ flags: Int32) throws(ResultCode) {
    try base.lockShared(offset, count, flags)
  }

  func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    unsafe base.control(operation, argument)
  }
}

/// One open file of a sealed database, with the key that was registered for it.
///
/// The subclasses are ``PagedFile`` (with one subclass for each format), ``LogFile`` and
/// ``JournalFile``.
class SealedFile: OpenFile {
  let registered: RegisteredKey

  /// The faults that this connection found in the database, its log and its journal.
  let faults: RecentFaults

  init(base: BaseFile, registered: RegisteredKey, faults: RecentFaults) {
    self.registered = registered
    self.faults = faults
    super.init(base: base)
  }

  /// Records the reason for a failed call and returns its result code.
  @discardableResult
  func fail(
    _ code: SealedDatabaseError.Code, page: UInt32? = nil, _ result: Int32
  ) -> ResultCode {
    record(SealedDatabaseError(code, path: registered.path, pageNumber: page), result)
  }

  /// Records a fault, so that callers can ask for the reason behind SQLite's result code.
  @discardableResult
  func record(_ fault: SealedDatabaseError, _ result: Int32) -> ResultCode {
    faults.record(fault, result: result)
    FaultLog.record(fault)
    return ResultCode(result)
  }
}
