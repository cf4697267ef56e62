internal import CSQLite
internal import FileLayer
package import SystemPackage
package import VaultCrypto

/// A database to be copied: it is opened read-only and stays as it is, nothing is left beside it.
package final class CopySource {
  /// How SQLite is to open it.
  let uri: String
  let path: String
  let registration: KeyRegistration?
  private let base: String

  /// The file, held so that nobody else can have it open; nil for a sealed one that others use.
  private let held: LockedInputFile?

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

  /// A sealed database; others may have it open.
  ///
  /// Where nobody has, it is held exclusively until this object goes: SQLite would otherwise leave
  /// an empty log beside a database in WAL mode.
  package static func sealed(
    _ path: FilePath, key: borrowing SecretBytes, over base: String = "unix"
  ) throws(SealedFileError) -> CopySource {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.inspect(path, over: base).require(key: key, at: path, exists: true)
    let registration = try SealedVFS.register(key: key, at: path, over: base)
    do throws(SealedFileError) {
      let held = try hold(full, over: base)
      return CopySource(full, "immutable=1&vfs=sealed", registration, held, over: base)
    } catch  where error.code == .busy || isInTheLog(error, full) {
      return CopySource(full, "mode=ro&vfs=sealed", registration, nil, over: base)
    }
  }

  /// A closed SQLCipher 4 database.
  package static func sqlcipher4(
    _ path: FilePath, key: borrowing SQLCipherKey, over base: String = "unix"
  ) throws(SealedFileError) -> CopySource {
    let full = try SealedVFS.fullPath(path)
    try requireFileWithBytes(full)
    let held = try hold(full, over: base)
    let registration = try SealedVFS.register(sqlcipher4: key, at: path, over: base)
    return CopySource(full, "immutable=1&vfs=sealed", registration, held, over: base)
  }

  /// A closed plain database, of any page size.
  package static func plain(
    _ path: FilePath, over base: String = "unix"
  ) throws(SealedFileError) -> CopySource {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.install()
    switch try SealedVFS.inspect(path, over: base) {
    case .plainSQLite: break
    case .absent: throw SealedFileError(.absent, path: full)
    case .sealed, .newerVersion:
      throw SealedFileError(.notPlainDatabase, path: full, detail: "it is a sealed one")
    case .empty, .foreign: throw SealedFileError(.notPlainDatabase, path: full)
    }
    let held = try hold(full, over: base)
    return CopySource(full, "immutable=1&vfs=\(base)", nil, held, over: base)
  }

  /// Makes sure that the file alone is the database, and was while it was read.
  func requireClosed() throws(SealedFileError) {
    guard held != nil, let vfs = unsafe sqlite3_vfs_find(base) else { return }
    try unsafe SiblingFiles.requireNone(of: path, over: vfs)
  }

  /// Takes the file for ourselves: no other connection can have it open, not even an idle one with
  /// a log.
  private static func hold(
    _ path: String, over base: String
  ) throws(SealedFileError) -> LockedInputFile {
    guard let vfs = unsafe sqlite3_vfs_find(base) else {
      throw SealedFileError(.invalidArgument, path: path, detail: "there is no VFS \(base)")
    }
    guard let file = try unsafe LockedInputFile(path, kind: SQLITE_OPEN_MAIN_DB, over: vfs) else {
      throw SealedFileError(.absent, path: path)
    }
    try file.lockShared()
    try unsafe SiblingFiles.requireNone(of: path, over: vfs)
    try file.lockExclusively()
    return file
  }

  /// An empty file would be taken for a new database, and a pipe would not let itself be opened.
  private static func requireFileWithBytes(_ path: String) throws(SealedFileError) {
    let status = try SealedFileError.translating(FilePath(path)) { () throws(FileError) in
      try LinuxFileSystem().status(of: FilePath(path))
    }
    guard let status else { return }  // another VFS need not keep its files where the system does
    guard status.kind == .regular else {
      throw SealedFileError(.notDatabaseFile, path: path, detail: "it is not a regular file")
    }
    guard status.byteCount > 0 else {
      throw SealedFileError(.notDatabaseFile, path: path, detail: "it is empty")
    }
  }

  /// Whether a sealed database is refused for its log alone, which SQLite can read.
  private static func isInTheLog(_ error: SealedFileError, _ path: String) -> Bool {
    error.code == .notClosed && error.detail?.contains(path + "-wal") == true
  }

  /// A path as a URI holds it: <https://sqlite.org/uri.html>.
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
