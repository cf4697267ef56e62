internal import CSQLite
public import SystemPackage
public import VaultCrypto

/// An SQLite VFS that seals databases whose keys are registered with it, and passes others through.
///
/// The format is in `docs/reference/sealed-database-format.md`. The VFS becomes the process's default, so
/// that unmodified libraries open a sealed database by its plain path. The key never appears in a
/// path or a URI: xOpen finds it in a registry. After a call of ``allowKeyFilesInURIs()``, xOpen
/// also reads the key file that a URI names.
public enum SealedVFS {
  /// The answer to `SQLITE_FCNTL_VFSNAME`; a connection with another answer is not sealed.
  public static let name = "sealed"

  /// Makes this VFS the process's default, over SQLite's own "unix"; further calls do nothing.
  ///
  /// - Throws: `inputOutput` if SQLite has no VFS "unix", or refuses this one.
  public static func install() throws(SealedDatabaseError) {
    guard installation == SQLITE_OK else {
      throw SealedDatabaseError(
        .inputOutput, path: name,
        detail: installation == SQLITE_MISUSE
          ? "another copy of the sealed VFS is in this process" : "SQLite refuses the VFS")
    }
  }

  private static let installation: Int32 = {
    guard sqlite3_initialize() == SQLITE_OK, let base = unsafe sqlite3_vfs_find("unix") else {
      return SQLITE_ERROR
    }
    // Ours would hide the other copy, and with it the keys that it knows.
    guard unsafe sqlite3_vfs_find(name) == nil else { return SQLITE_MISUSE }
    return unsafe sqlite3_vfs_register(VFSCallbacks.makeVFS(over: base), 1)
  }()

  /// Registers a key for the database at `path`, and installs the VFS.
  ///
  /// The database can be created later. A later registration of the same path takes precedence for
  /// connections opened after it.
  ///
  /// - Parameters:
  ///   - key: 32 bytes, which are copied.
  ///   - base: the name of the underlying VFS; tests name a recording one.
  ///   - newFileID: the identity of a new file, 8 bytes; nil draws one. An existing file keeps its
  ///     own.
  ///   - setsReserve: true if the caller itself reserves the 40 bytes, by
  ///     `SQLITE_FCNTL_RESERVE_BYTES` before its first write; it can then choose `auto_vacuum`. By
  ///     default an empty file shows a header that already reserves them.
  /// - Throws: `invalidArgument`, or `inputOutput` if the path cannot be made absolute.
  public static func register(
    key: borrowing SecretBytes, at path: FilePath, over base: String = "unix",
    newFileID: [UInt8]? = nil, setsReserve: Bool = false
  ) throws(SealedDatabaseError) -> KeyRegistration {
    try install()
    let path = try fullPath(path)
    guard key.byteCount == KeySource.keyByteCount else {
      throw SealedDatabaseError(.invalidArgument, path: path, detail: "a key must have 32 bytes")
    }
    let fileID = newFileID ?? RandomSource.system.bytes(count: SealedHeader.fileIDByteCount)
    guard fileID.count == SealedHeader.fileIDByteCount else {
      throw SealedDatabaseError(.invalidArgument, path: path, detail: "a file id must have 8 bytes")
    }
    return try unsafe KeyRegistration(
      RegisteredKey(
        path: path, key: key.copy(), base: underlying(base, for: path), newFileID: fileID,
        emptyFile: setsReserve ? .bare : .standIn))
  }

  /// The path as SQLite passes it to xOpen: absolute, symbolic links resolved.
  package static func fullPath(_ path: FilePath) throws(SealedDatabaseError) -> String {
    guard let vfs = unsafe sqlite3_vfs_find("unix") else {
      throw SealedDatabaseError(.inputOutput, path: path.string, detail: "SQLite has no VFS unix")
    }
    var buffer = [CChar](repeating: 0, count: Int(unsafe vfs.pointee.mxPathname) + 1)
    let byteCount = Int32(buffer.count)
    let result = unsafe path.string.withCString { source in
      unsafe buffer.withUnsafeMutableBufferPointer { target in
        unsafe vfs.pointee.xFullPathname(vfs, source, byteCount, target.baseAddress)
      }
    }
    guard result == SQLITE_OK || result == SQLITE_OK_SYMLINK else {
      throw SealedDatabaseError(
        .inputOutput, path: path.string, detail: "the path cannot be resolved")
    }
    let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    // A repaired name would be that of another file.
    guard let full = String(validating: bytes, as: UTF8.self) else {
      throw SealedDatabaseError(
        .invalidArgument, path: path.string,
        detail: "the path, with its links resolved, is not UTF-8")
    }
    return full
  }
}
