internal import CSQLite
internal import Synchronization

extension SealedVFS {
  /// The last fault found in any sealed file of this process, for callers without a
  /// ``KeyRegistration``; nil if there was none.
  package static var lastFault: SealedDatabaseError? {
    FaultLog.lastFault.withLock { $0 }
  }
}

/// Records faults beside SQLite's result codes, which cannot tell them apart.
///
/// Each fault also goes to SQLite's error log: <https://sqlite.org/errlog.html>.
enum FaultLog {
  fileprivate static let lastFault = Mutex<SealedDatabaseError?>(nil)

  static func record(_ fault: SealedDatabaseError) {
    lastFault.withLock { $0 = fault }
    unsafe csqlite_log(SQLITE_WARNING, fault.description)
  }

  static func record(_ tail: DiscardedLogTail, path: String) {
    unsafe csqlite_log(SQLITE_NOTICE, "\(path): recovery left out the end of the log: \(tail)")
  }
}

/// The newest faults that the VFS found, each with the result code that it gave SQLite.
///
/// Each connection has one, and all connections of a registration share another. The result code
/// that SQLite reports identifies the fault, so that an old fault does not explain a new failure.
final class RecentFaults: Sendable {
  private struct Entry: Sendable {
    let fault: SealedDatabaseError
    let result: Int32

    /// Whether SQLite can report the fault by this extended code.
    func fits(_ reported: Int32) -> Bool {
      if result == reported { return true }
      switch reported & 0xFF {
      case SQLITE_NOTADB, SQLITE_CORRUPT: return result & 0xFF == reported & 0xFF
      // A log that is not sealed is shown to SQLite with a version that SQLite refuses itself.
      case SQLITE_CANTOPEN: return result == SQLITE_OK
      // A reading connection takes a journal that it cannot open for the one of a killed writer.
      case SQLITE_READONLY: return result == SQLITE_CANTOPEN
      default: return false
      }
    }
  }

  private struct State: Sendable {
    var entries: [Entry] = []
    var hasMetDamage = false
    var whole: RecentFaults?
  }

  private static let capacity = 16
  private let state: Mutex<State>

  /// - Parameter whole: the faults of the connection's registration; it receives every fault, too.
  init(partOf whole: RecentFaults? = nil) {
    state = Mutex(State(whole: whole))
  }

  /// The newest fault.
  var newest: SealedDatabaseError? { state.withLock { $0.entries.last?.fault } }

  /// The newest fault that SQLite reports by an extended result code.
  func newest(reportedAs result: Int32) -> SealedDatabaseError? {
    state.withLock { state in state.entries.last { $0.fits(result) }?.fault }
  }

  func record(_ fault: SealedDatabaseError, result: Int32) {
    let whole = state.withLock { state in
      if state.entries.count == Self.capacity { state.entries.removeFirst() }
      state.entries.append(Entry(fault: fault, result: result))
      return state.whole
    }
    whole?.record(fault, result: result)
  }

  /// Whether a connection got an error for a damaged or missing page; once true, it stays true.
  var hasMetDamage: Bool { state.withLock { $0.hasMetDamage } }

  func noteDamage() {
    let whole = state.withLock { state in
      state.hasMetDamage = true
      return state.whole
    }
    whole?.noteDamage()
  }

  /// Passes all further faults to another registration.
  func move(to whole: RecentFaults) {
    let hasMetDamage = state.withLock { state in
      state.whole = whole
      return state.hasMetDamage
    }
    if hasMetDamage { whole.noteDamage() }
  }
}
