internal import CSQLite
internal import Synchronization
internal import VaultCrypto

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
