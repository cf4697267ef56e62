internal import CSQLite

/// One open file of a sealed database, with the key that was registered for it.
///
/// The subclasses are ``PagedFile`` with one class a format, ``LogFile`` and ``JournalFile``.
class SealedFile: OpenFile {
  let registered: RegisteredKey

  /// What was found through this connection to this database, its log and its journal.
  let faults: RecentFaults

  init(base: BaseFile, registered: RegisteredKey, faults: RecentFaults) {
    self.registered = registered
    self.faults = faults
    super.init(base: base)
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
