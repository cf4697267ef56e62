internal import CSQLite
internal import FileLayer
internal import Glibc
package import SystemPackage
package import VaultCrypto

/// A database to copy: it is opened read-only, is not changed, and no file is left beside it.
package final class CopySource {
  /// The URI by which SQLite opens the database.
  let uri: String
  let path: String
  let registration: KeyRegistration?
  private let base: String

  /// The file, locked against every other connection; nil for a sealed database that others use.
  private let held: LockedInputFile?

  /// Whether SQLite makes an index for a log that no connection uses.
  private var leavesIndex = false

  private init(
    _ path: String, _ parameters: String, _ registration: KeyRegistration?,
    _ held: LockedInputFile?,
    over base: String
  ) {
    self.path = path
    uri = "file:\(Self.escaped(path))?\(parameters)"
    self.registration = registration
    self.held = held
    self.base = base
  }

  /// Opens a sealed database, which others can have open.
  ///
  /// If it is not in use, it is locked exclusively until this object is released. Otherwise SQLite
  /// would leave an empty log beside a database in WAL mode.
  package static func sealed(
    _ path: FilePath, key: borrowing SecretBytes, over base: String = "unix"
  ) throws(SealedDatabaseError) -> CopySource {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.inspect(path, over: base).require(key: key, at: path, exists: true)
    let registration = try SealedVFS.register(key: key, at: path, over: base)
    do throws(SealedDatabaseError) {
      let held = try hold(full, over: base)
      return CopySource(full, "immutable=1&vfs=sealed", registration, held, over: base)
    } catch  where error.code == .busy || isInTheLog(error, full) {
      let source = CopySource(full, "mode=ro&vfs=sealed", registration, nil, over: base)
      source.leavesIndex = unsafe access(full + "-shm", F_OK) != 0
      return source
    }
  }

  /// Removes the index that SQLite leaves beside a log if the connection cannot write.
  ///
  /// No other connection can use the index while the database is locked exclusively.
  deinit {
    guard leavesIndex, let vfs = unsafe sqlite3_vfs_find(base),
      let file = try? unsafe LockedInputFile(path, kind: SQLITE_OPEN_MAIN_DB, over: vfs),
      (try? file.lockShared()) != nil, (try? file.lockExclusively()) != nil, file.isAlone
    else { return }
    _ = unsafe vfs.pointee.xDelete(vfs, path + "-shm", 0)
  }

  /// Opens a closed SQLCipher 4 database.
  package static func sqlcipher4(
    _ path: FilePath, key: borrowing SQLCipherKey, over base: String = "unix"
  ) throws(SealedDatabaseError) -> CopySource {
    let full = try SealedVFS.fullPath(path)
    try requireFileWithBytes(full)
    let held = try hold(full, over: base)
    let registration = try SealedVFS.register(sqlcipher4: key, at: path, over: base)
    return CopySource(full, "immutable=1&vfs=sealed", registration, held, over: base)
  }

  /// Opens a closed plain database of any page size.
  package static func plain(
    _ path: FilePath, over base: String = "unix"
  ) throws(SealedDatabaseError) -> CopySource {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.install()
    switch try SealedVFS.inspect(path, over: base) {
    case .plainSQLite: break
    case .absent: throw SealedDatabaseError(.notFound, path: full)
    case .sealed, .newerVersion:
      throw SealedDatabaseError(.notPlainDatabase, path: full, detail: "it is a sealed database")
    case .empty, .foreign: throw SealedDatabaseError(.notPlainDatabase, path: full)
    }
    let held = try hold(full, over: base)
    return CopySource(full, "immutable=1&vfs=\(base)", nil, held, over: base)
  }

  /// Checks that no log or journal held changes while the file was read.
  func requireClosed() throws(SealedDatabaseError) {
    guard held != nil, let vfs = unsafe sqlite3_vfs_find(base) else { return }
    try unsafe SiblingFiles.requireNone(of: path, over: vfs)
  }

  /// Locks the file exclusively: no other connection can have it open, not even an idle one with a
  /// log.
  private static func hold(
    _ path: String, over base: String
  ) throws(SealedDatabaseError) -> LockedInputFile {
    guard let vfs = unsafe sqlite3_vfs_find(base) else {
      throw SealedDatabaseError(.invalidArgument, path: path, detail: "there is no VFS \(base)")
    }
    guard let file = try unsafe LockedInputFile(path, kind: SQLITE_OPEN_MAIN_DB, over: vfs) else {
      throw SealedDatabaseError(.notFound, path: path)
    }
    try file.lockShared()
    try unsafe SiblingFiles.requireNone(of: path, over: vfs)
    try file.lockExclusively()
    return file
  }

  /// Refuses an empty file, which SQLite would take for a new database, and a pipe, on which open
  /// blocks.
  private static func requireFileWithBytes(_ path: String) throws(SealedDatabaseError) {
    guard let status = try translatingFileErrors(LinuxFileSystem().status(of: FilePath(path)))
    else { return }  // the files of another VFS can be outside the file system
    guard status.kind == .regular else {
      throw SealedDatabaseError(.notDatabaseFile, path: path, detail: "it is not a regular file")
    }
    guard status.byteCount > 0 else {
      throw SealedDatabaseError(.notDatabaseFile, path: path, detail: "it is empty")
    }
  }

  /// Whether a sealed database is refused only because of its log, which SQLite can read.
  private static func isInTheLog(_ error: SealedDatabaseError, _ path: String) -> Bool {
    error.code == .notClosed && error.detail?.contains(path + "-wal") == true
  }

  /// Escapes a path for a URI: <https://sqlite.org/uri.html>.
  private static func escaped(_ path: String) -> String {
    path.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"),
        UInt8(ascii: "_"), UInt8(ascii: "."):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }.joined()
  }
}
