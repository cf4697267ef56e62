internal import CSQLite
internal import VaultCrypto

/// A result code by which SQLite learns that a call failed: <https://sqlite.org/rescode.html>.
struct ResultCode: Error, CustomStringConvertible {
  let value: Int32

  var description: String {
    unsafe sqlite3_errstr(value).map { unsafe String(cString: $0) } ?? "result code \(value)"
  }

  init(_ value: Int32) {
    self.value = value
  }

  /// Whether a read ended at the end of the file.
  ///
  /// That is an answer. Every other code is a failure.
  var isShortRead: Bool { value == SQLITE_IOERR_SHORT_READ }

  /// Whether another connection holds a lock.
  var isBusy: Bool { value & 0xFF == SQLITE_BUSY }

  /// Whether memory ran out, which says nothing about the file.
  var isOutOfMemory: Bool { value == SQLITE_NOMEM || value == SQLITE_IOERR_NOMEM }

  /// Throws every result but `SQLITE_OK`.
  static func require(_ result: Int32) throws(ResultCode) {
    if result != SQLITE_OK { throw ResultCode(result) }
  }

  /// Runs a step of a cipher, and throws `SQLITE_NOMEM` if OpenSSL fails.
  ///
  /// Once a cipher exists, OpenSSL fails only when it runs out of memory.
  @inline(__always)
  static func translatingCryptoErrors<R>(
    _ step: @autoclosure () throws(CryptoError) -> R
  ) throws(ResultCode) -> R {
    do throws(CryptoError) {
      return try step()
    } catch {
      FaultLog.record(SealedDatabaseError(error, path: ""))
      throw ResultCode(SQLITE_NOMEM)
    }
  }
}

// SQLite's extended result codes, which the C header makes with macros that Swift does not import:
// <https://sqlite.org/rescode.html>.

let SQLITE_IOERR_READ = SQLITE_IOERR | (1 << 8)
let SQLITE_IOERR_SHORT_READ = SQLITE_IOERR | (2 << 8)
let SQLITE_IOERR_WRITE = SQLITE_IOERR | (3 << 8)
let SQLITE_IOERR_FSYNC = SQLITE_IOERR | (4 << 8)
let SQLITE_IOERR_NOMEM = SQLITE_IOERR | (12 << 8)
let SQLITE_IOERR_LOCK = SQLITE_IOERR | (15 << 8)
/// The bytes read differ from the bytes written; SQLite's checksum VFS uses this code, too.
let SQLITE_IOERR_DATA = SQLITE_IOERR | (32 << 8)
let SQLITE_READONLY_DBMOVED = SQLITE_READONLY | (4 << 8)
let SQLITE_OK_SYMLINK = SQLITE_OK | (2 << 8)
