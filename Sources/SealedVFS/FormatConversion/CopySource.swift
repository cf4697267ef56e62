internal import CSQLite
internal import FileLayer
internal import Glibc
package import SystemPackage
package import VaultCrypto

/// A database to copy: it is opened read-only, is not changed, and no file is left beside it.
package final class CopySource {
  /// The URI by which SQLite opens the database.
  let uri: String
  let registration: KeyRegistration?
  private let files: DatabaseFiles

  var path: String { files.path }

  /// The file, locked against every other connection; nil for a sealed database that others use.
  private let held: LockedInputFile?

  /// Whether SQLite makes an index for a log that no connection uses.
  private var leavesIndex = false

  private init(
    _ files: DatabaseFiles, _ parameters: String, _ registration: KeyRegistration?,
    _ held: LockedInputFile?
  ) {
    self.files = files
    uri = DatabaseURI(files.path, parameters: parameters).text
    self.registration = registration
    self.held = held
  }

  /// Opens a sealed database, which others can have open.
  ///
  /// If it is not in use, it is locked exclusively until this object is released. Otherwise SQLite
  /// would leave an empty log beside a database in WAL mode.
  package static func sealed(
    _ path: FilePath, key: borrowing SecretBytes, over base: String = "unix"
  ) throws(SealedDatabaseError) -> CopySource {
    let files = try DatabaseFiles(path, over: base)
    try SealedVFS.require(key: key, at: path, over: base)
    let registration = try SealedVFS.register(key: key, at: path, over: base)
    do throws(SealedDatabaseError) {
      let held = try hold(files)
      return CopySource(files, "immutable=1&vfs=sealed", registration, held)
    } catch  where error.code == .busy || isInTheLog(error, files.path) {
      let source = CopySource(files, "mode=ro&vfs=sealed", registration, nil)
      source.leavesIndex = unsafe access(files.path + "-shm", F_OK) != 0
      return source
    }
  }

  /// Removes the index that SQLite leaves beside a log if the connection cannot write.
  ///
  /// No other connection can use the index while the database is locked exclusively.
  deinit {
    // On any failure the index stays, which is harmless.
    guard leavesIndex, let file = try? files.open(),
      (try? file.lockShared()) != nil, (try? file.lockExclusively()) != nil, file.isAlone
    else { return }
    _ = unsafe files.vfs.pointee.xDelete(files.vfs, path + "-shm", 0)
  }

  /// Opens a closed SQLCipher 4 database.
  package static func sqlcipher4(
    _ path: FilePath, key: borrowing SQLCipherKey, over base: String = "unix"
  ) throws(SealedDatabaseError) -> CopySource {
    let files = try DatabaseFiles(path, over: base)
    try requireFileWithBytes(files.path)
    let held = try hold(files)
    let registration = try SealedVFS.register(sqlcipher4: key, at: path, over: base)
    return CopySource(files, "immutable=1&vfs=sealed", registration, held)
  }

  /// Opens a closed plain database of any page size.
  package static func plain(
    _ path: FilePath, over base: String = "unix"
  ) throws(SealedDatabaseError) -> CopySource {
    let files = try DatabaseFiles(path, over: base)
    try SealedVFS.install()
    switch try SealedVFS.inspect(path, over: base) {
    case .plainSQLite: break
    case .absent: throw SealedDatabaseError(.notFound, path: files.path)
    case .sealed, .newerVersion:
      throw SealedDatabaseError(
        .notPlainDatabase, path: files.path, detail: "it is a sealed database")
    case .empty, .foreign: throw SealedDatabaseError(.notPlainDatabase, path: files.path)
    }
    return CopySource(files, "immutable=1&vfs=\(base)", nil, try hold(files))
  }

  /// Checks that no log or journal held changes while the file was read.
  func requireClosed() throws(SealedDatabaseError) {
    if held != nil { try files.requireClosed() }
  }

  /// Locks the file exclusively: no other connection can have it open, not even an idle one with a
  /// log.
  private static func hold(
    _ files: DatabaseFiles
  ) throws(SealedDatabaseError) -> LockedInputFile {
    guard let file = try files.open() else {
      throw SealedDatabaseError(.notFound, path: files.path)
    }
    try file.lockShared()
    try files.requireClosed()
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
}
