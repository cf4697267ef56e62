internal import CSQLite
internal import Synchronization
internal import VaultCrypto

/// The registered keys of the process, by the full path of their database.
enum KeyRegistry {
  private static let entries = Mutex<[String: [RegisteredKey]]>([:])

  static func add(_ registered: RegisteredKey) {
    entries.withLock { $0[registered.path, default: []].append(registered) }
  }

  static func remove(_ registered: RegisteredKey) {
    entries.withLock { entries in
      entries[registered.path]?.removeAll { $0 === registered }
      if entries[registered.path]?.isEmpty == true { entries[registered.path] = nil }
    }
  }

  /// The key that was registered last for this database.
  static func find(database path: UnsafePointer<CChar>) -> RegisteredKey? {
    entries.withLock { entries in
      entries.isEmpty ? nil : unsafe entries[String(cString: path)]?.last
    }
  }

  /// The key of the database that a log, journal or super-journal of this name belongs to.
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

/// A promise that the database at a path is sealed under a key, for as long as this object lives.
///
/// Keep it as long as connections may be *opened*: a `DatabasePool` opens readers when it needs
/// them. Connections that are open keep the key by themselves. When this object goes, the path is
/// no longer registered; after the last connection the key is wiped.
public final class KeyRegistration: Sendable {
  private let registered: RegisteredKey

  init(_ registered: RegisteredKey) {
    self.registered = registered
    KeyRegistry.add(registered)
  }

  deinit {
    KeyRegistry.remove(registered)
  }

  /// Why a call on one of the database's files failed last, more precisely than SQLite's result
  /// code says; nil when none has.
  ///
  /// It stays until the next one.
  public var fault: SealedFileError? { registered.faults.newest }

  /// Why a call failed that SQLite reports by an extended result code, through whichever connection;
  /// nil when the VFS found nothing that SQLite reports so.
  public func fault(reportedAs resultCode: Int32) -> SealedFileError? {
    registered.faults.newest(reportedAs: resultCode)
  }

  /// Takes the faults of a connection for its own from now on.
  ///
  /// xOpen finds the *last* registration of a path; whoever made this connection for an earlier one
  /// says so.
  package func adopt(_ connection: OpaquePointer) {
    unsafe SealedConnection.file(of: connection, "main")?.faults.move(to: registered.faults)
  }

  /// Has a connection keep the log as it closes, where any connection of this registration has met damage: what
  /// the log holds may be all that is left of some pages.
  package func keepLogAfterDamage(on connection: OpaquePointer) {
    guard registered.faults.hasMetDamage else { return }
    unsafe SealedConnection.file(of: connection, "main")?.hasMetDamage = true
  }

  /// What the last recovery of the write-ahead log left out; nil when nothing.
  ///
  /// It was written under the log's current salts: a torn tail after a power cut, or damage.
  public var discardedLogTail: DiscardedLogTail? { registered.discardedTail }
}

/// A path whose database is sealed, with its key: what xOpen finds.
///
/// Open files hold it too, so that the key lives as long as a connection that was opened with it,
/// and is wiped after the last.
@safe final class RegisteredKey: @unchecked Sendable {
  // Sendable: all is constant but what the mutex guards; a registered VFS is never freed.

  /// What an empty file looks like before its first page is written.
  enum EmptyFile: Sendable {
    /// A header with page size and reserve, so that anyone can create a database. SQLite then
    /// refuses another `auto_vacuum`, and `VACUUM INTO` it.
    case standIn
    /// As it is: whoever creates must call `SQLITE_FCNTL_RESERVE_BYTES` with 40 first.
    case bare
  }

  let path: String
  let format: FileFormat
  /// The database key; of an SQLCipher file, the key of its pages.
  let key: SecretBytes
  let base: UnsafeMutablePointer<sqlite3_vfs>
  /// The identity of a new file; of an SQLCipher file, new or old, the salt.
  let newFileID: [UInt8]
  let emptyFile: EmptyFile

  /// What was found through any connection.
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
