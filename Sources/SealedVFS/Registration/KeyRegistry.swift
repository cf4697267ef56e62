internal import CSQLite
internal import Synchronization
internal import VaultCrypto

/// The registered keys of the process, by the full path of their database.
enum KeyRegistry {
  private static let entries = Mutex<[String: [RegisteredKey]]>([:])

  /// The number of open sealed files by database path.
  private static let openCounts = Mutex<[String: Int]>([:])

  static func noteOpening(of path: String) {
    openCounts.withLock { $0[path, default: 0] += 1 }
  }

  static func noteClosing(of path: String) {
    openCounts.withLock { counts in
      let count = (counts[path] ?? 1) - 1
      counts[path] = count > 0 ? count : nil
    }
  }

  /// Whether a database is open as a sealed one.
  static func isOpen(_ path: String) -> Bool { openCounts.withLock { $0[path] != nil } }

  static func add(_ registered: RegisteredKey) {
    entries.withLock { $0[registered.path, default: []].append(registered) }
  }

  static func remove(_ registered: RegisteredKey) {
    entries.withLock { entries in
      entries[registered.path]?.removeAll { $0 === registered }
      if entries[registered.path]?.isEmpty == true { entries[registered.path] = nil }
    }
  }

  /// The key that was registered last for a database.
  static func find(database path: UnsafePointer<CChar>) -> RegisteredKey? {
    entries.withLock { entries in
      entries.isEmpty ? nil : unsafe entries[String(cString: path)]?.last
    }
  }

  /// The key of the database to which a log, journal or super-journal belongs.
  static func find(databaseOrSibling path: UnsafePointer<CChar>) -> RegisteredKey? {
    entries.withLock { entries in
      if entries.isEmpty { return nil }
      let path = unsafe String(cString: path)
      for suffix in ["-wal", "-journal"] where path.hasSuffix(suffix) {
        if let found = entries[String(path.dropLast(suffix.count))]?.last { return found }
      }
      // vdbeaux.c: the database's path, "-mj", six digits, "9" and two digits.
      let superJournalSuffix = path.suffix(12)
      if superJournalSuffix.hasPrefix("-mj"),
        let found = entries[String(path.dropLast(superJournalSuffix.count))]?.last
      {
        return found
      }
      return entries[path]?.last
    }
  }
}

/// Registers the key of the database at a path, for as long as this object lives.
///
/// Keep it as long as connections can be *opened*: a `DatabasePool` opens readers when it needs
/// them. Open connections keep the key themselves. When this object is released, the path is no
/// longer registered. After the last connection closes, the key is wiped.
public final class KeyRegistration: Sendable {
  private let registered: RegisteredKey

  init(_ registered: RegisteredKey) {
    self.registered = registered
    KeyRegistry.add(registered)
  }

  deinit {
    KeyRegistry.remove(registered)
  }

  /// The reason for the last failed call on one of the database's files; nil if none failed.
  ///
  /// It is more precise than SQLite's result code. It stays until the next fault.
  public var fault: SealedDatabaseError? { registered.faults.newest }

  /// The reason for a failed call that SQLite reports by an extended result code.
  ///
  /// The call can have been on any connection of this registration.
  ///
  /// - Returns: nil if the VFS found nothing that SQLite reports so.
  public func fault(reportedAs resultCode: Int32) -> SealedDatabaseError? {
    registered.faults.newest(reportedAs: resultCode)
  }

  /// Receives the faults of a connection from now on.
  ///
  /// xOpen uses the *last* registration of a path. The owner of an earlier registration calls this
  /// for each connection that it opened.
  package func adopt(_ connection: OpaquePointer) {
    unsafe SealedConnection.file(of: connection, "main")?.faults.move(to: registered.faults)
  }

  /// Makes a connection keep the log when it closes, if a connection of this registration found
  /// damage.
  ///
  /// The log can then hold the only copy of some pages.
  package func keepLogAfterDamage(on connection: OpaquePointer) {
    guard registered.faults.hasMetDamage else { return }
    unsafe SealedConnection.file(of: connection, "main")?.hasMetDamage = true
  }

  /// The frames that the last recovery of the write-ahead log left out; nil if there were none.
  ///
  /// They were written under the log's current salts. They are a torn tail after a power cut, or
  /// damage.
  public var discardedLogTail: DiscardedLogTail? { registered.discardedTail }

  /// The error for a result code: the fault that the VFS recorded, or one made from the code.
  package func explain(_ result: Int32, _ path: String) -> SealedDatabaseError {
    switch result & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED: return SealedDatabaseError(.busy, path: path)
    case SQLITE_FULL: return SealedDatabaseError(.diskFull, path: path)
    default: break
    }
    if let found = fault(reportedAs: result) { return found }
    if result & 0xFF == SQLITE_READONLY { return SealedDatabaseError(.readOnly, path: path) }
    return SealedDatabaseError(ResultCode(result), path: path)
  }
}

/// The path of a sealed database with its key, for xOpen to find.
///
/// Open files hold it, too. The key lives as long as a connection that was opened with it, and is
/// wiped after the last one closes.
@safe final class RegisteredKey: @unchecked Sendable {
  // Sendable: all properties are constant, but for a mutex; a registered VFS is never freed.

  /// The contents that an empty file shows before its first page is written.
  enum EmptyFile: Sendable {
    /// The file shows a header with page size and reserve, so that any program can create a
    /// database.
    ///
    /// SQLite then refuses a different `auto_vacuum`, and a `VACUUM INTO` it.
    case standIn
    /// The file shows as empty: its creator must first call `SQLITE_FCNTL_RESERVE_BYTES` with 40.
    case bare
  }

  let path: String
  let format: FileFormat
  /// The database key; for an SQLCipher file, the key of its pages.
  let key: SecretBytes
  let base: UnsafeMutablePointer<sqlite3_vfs>
  /// The identity of a new file; for an SQLCipher file, new or old, the salt.
  let newFileID: [UInt8]
  let emptyFile: EmptyFile

  /// The faults found through any connection.
  let faults = RecentFaults()
  private let lastDiscardedTail = Mutex<DiscardedLogTail?>(nil)

  init(
    path: String, format: FileFormat = .sealed, key: consuming SecretBytes,
    base: UnsafeMutablePointer<sqlite3_vfs>, newFileID: [UInt8], emptyFile: EmptyFile
  ) {
    self.path = path
    self.format = format
    self.key = key
    unsafe self.base = base
    self.newFileID = newFileID
    self.emptyFile = emptyFile
  }

  var discardedTail: DiscardedLogTail? { lastDiscardedTail.withLock { $0 } }

  func record(_ tail: DiscardedLogTail) {
    lastDiscardedTail.withLock { $0 = tail }
    FaultLog.record(tail, path: path)
  }
}
