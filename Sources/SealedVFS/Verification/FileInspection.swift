internal import CSQLite
internal import FileLayer
public import SystemPackage
public import VaultCrypto

/// The kind of file at a path, read from its first 16 bytes.
public enum FileInspection: Sendable, Equatable {
  /// No file.
  case absent
  /// An empty file: a database that was never written.
  case empty
  /// An unencrypted SQLite database.
  case plainSQLite
  /// Any other file.
  case foreign
  /// A sealed database of this version.
  case sealed(SealedHeader)
  /// A sealed database of another version.
  case newerVersion(Int)

  /// Requires a sealed database that `key` opens, or, if `exists` is false, a path for a new one.
  ///
  /// - Throws: the `SealedDatabaseError` for the kind of file that is there instead.
  public func require(
    key: borrowing SecretBytes, at path: FilePath, exists: Bool
  ) throws(SealedDatabaseError) {
    switch self {
    case .absent, .empty:
      if exists { throw SealedDatabaseError(.notFound, path: path.string) }
    case .plainSQLite: throw SealedDatabaseError(.plainDatabase, path: path.string)
    case .foreign: throw SealedDatabaseError(.notSealed, path: path.string)
    case .newerVersion(let version):
      throw SealedDatabaseError(.newerVersion, path: path.string, detail: "version \(version)")
    case .sealed(let header):
      if !header.matches(key: key) { throw SealedDatabaseError(.wrongKey, path: path.string) }
    }
  }
}

extension SealedVFS {
  /// Inspects the file at a path, without a key, a lock or a change.
  ///
  /// It reads through a file of SQLite's own "unix". If this process holds SQLite's lock on the
  /// file, a plain open and close would release that lock (POSIX locks; see os_unix.c).
  ///
  /// - Throws: `inputOutput` if the file exists and cannot be read.
  public static func inspect(
    _ path: FilePath, over base: String = "unix"
  ) throws(SealedDatabaseError) -> FileInspection {
    let full = try fullPath(path)
    guard let vfs = unsafe sqlite3_vfs_find(base) else {
      throw SealedDatabaseError(.invalidArgument, path: full, detail: "there is no VFS \(base)")
    }
    switch try status(of: full) {
    // Another VFS can keep its files outside the file system.
    case nil where unsafe !isThere(full, on: vfs): return .absent
    case nil: break
    case let status? where status.kind != .regular: return .foreign
    case let status? where status.byteCount == 0: return .empty
    default: break
    }
    let file = unsafe BaseFile(vfs)
    let name = unsafe sqlite3_create_filename(full, "", "", 0, nil)
    defer { unsafe sqlite3_free_filename(name) }
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB
    let result = unsafe vfs.pointee.xOpen(vfs, name, file.pointer, flags, nil)
    defer { file.close() }
    guard result == SQLITE_OK else {
      throw SealedDatabaseError(.inputOutput, path: full, detail: "it cannot be opened for reading")
    }
    return try read(file, full)
  }

  private static func isThere(
    _ path: String, on vfs: UnsafeMutablePointer<sqlite3_vfs>
  ) -> Bool {
    var answer: Int32 = 0
    return unsafe vfs.pointee.xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &answer) == SQLITE_OK
      && answer != 0
  }

  /// Reads the file's status without opening it.
  private static func status(of path: String) throws(SealedDatabaseError) -> FileStatus? {
    do throws(FileError) {
      return try LinuxFileSystem().status(of: FilePath(path))
    } catch {
      throw SealedDatabaseError(.inputOutput, path: path, detail: "\(error.errno)")
    }
  }

  private static func read(_ file: BaseFile, _ path: String) throws(SealedDatabaseError)
    -> FileInspection
  {
    let scratch = Scratch(byteCount: SealedHeader.byteCount)
    guard let byteCount = try? file.sealedByteCount() else {
      throw SealedDatabaseError(.inputOutput, path: path)
    }
    if byteCount == 0 { return .empty }
    if byteCount < SealedHeader.byteCount { return .foreign }
    guard (try? unsafe file.read(scratch.pointer, SealedHeader.byteCount, at: 0)) != nil else {
      throw SealedDatabaseError(.inputOutput, path: path)
    }
    return switch unsafe HeaderReading(Array(scratch.bytes(0..<SealedHeader.byteCount))) {
    case .zeros, .foreign: .foreign
    case .plainSQLite: .plainSQLite
    case .newerVersion(let version): .newerVersion(version)
    case .sealed(let header): .sealed(header)
    }
  }
}
