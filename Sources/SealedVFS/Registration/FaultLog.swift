internal import CSQLite
internal import Synchronization

extension SealedVFS {
  /// The last thing that was wrong with any sealed file of this process, for callers that hold no
  /// ``KeyRegistration``; nil when nothing was.
  package static var lastFault: SealedFileError? { FaultLog.last }
}

/// Where faults are told, beside SQLite's result codes, which cannot tell them apart.
///
/// Each goes to SQLite's error log too: <https://sqlite.org/errlog.html>.
enum FaultLog {
  private static let lastFault = Mutex<SealedFileError?>(nil)

  static var last: SealedFileError? { lastFault.withLock { $0 } }

  static func record(_ fault: SealedFileError) {
    lastFault.withLock { $0 = fault }
    unsafe csqlite_log(SQLITE_WARNING, fault.descriptionWithHint)
  }

  static func record(_ tail: DiscardedLogTail, path: String) {
    unsafe csqlite_log(SQLITE_NOTICE, "\(path): recovery left out the end of the log: \(tail)")
  }
}

extension SealedFileError {
  /// What, where, and what to do next, in one line.
  package var descriptionWithHint: String {
    hint.map { "\(description); \($0)" } ?? description
  }
}
