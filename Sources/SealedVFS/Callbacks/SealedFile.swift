internal import CSQLite

/// One open file of a sealed database: what SQLite's calls on it do.
///
/// The subclasses are ``MainFile``, ``LogFile`` and ``JournalFile``. SQLite calls a file from one
/// thread at a time, with the connection's mutex held.
class SealedFile {
  let base: BaseFile
  let registered: RegisteredKey

  /// What was found through this connection to this database, its log and its journal.
  let faults: RecentFaults

  init(base: BaseFile, registered: RegisteredKey, faults: RecentFaults) {
    self.base = base
    self.registered = registered
    self.faults = faults
  }

  func read(_ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64) -> Int32 {
    SQLITE_IOERR_READ
  }

  func write(_ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64) -> Int32 {
    SQLITE_IOERR_WRITE
  }

  func truncate(to byteCount: Int64) -> Int32 { base.truncate(to: byteCount) }

  func synchronize(_ flags: Int32) -> Int32 { base.synchronize(flags) }

  func byteCount(_ target: UnsafeMutablePointer<Int64>) -> Int32 {
    unsafe base.byteCount(target)
  }

  func lock(_ level: Int32) -> Int32 { base.lock(level) }

  func lockShared(_ offset: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    base.lockShared(offset, count, flags)
  }

  func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    unsafe base.control(operation, argument)
  }

  /// Records why a call fails and returns its result code.
  func fail(_ code: SealedFileError.Code, page: UInt32? = nil, _ result: Int32) -> Int32 {
    record(SealedFileError(code, path: registered.path, pageNumber: page), result)
    return result
  }

  /// Keeps a fault for whoever asks what SQLite's result code means.
  func record(_ fault: SealedFileError, _ result: Int32) {
    faults.record(fault, result: result)
    FaultLog.record(fault)
  }
}
