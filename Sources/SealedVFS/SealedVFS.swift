internal import CSQLite
public import SystemPackage
public import VaultCrypto

/// An SQLite VFS that seals the databases whose keys are registered with it, and passes all others
/// through: `docs/reference/sealed-database-format.md`.
///
/// It becomes the process's default, so that unmodified libraries open a sealed database by its
/// plain path. The key never appears in a path or a URI: xOpen finds it in a registry, or, where
/// ``allowKeyFilesInURIs()`` was called, in the key file that a URI names.
public enum SealedVFS {
  /// The name in `SQLITE_FCNTL_VFSNAME`: a connection that answers another one is not sealed.
  public static let name = "sealed"

  /// Makes this VFS the process's default, over SQLite's own "unix"; may be called again.
  ///
  /// - Throws: `ioFailed` when SQLite has no VFS "unix" or refuses ours.
  public static func install() throws(SealedFileError) {
    guard installation == SQLITE_OK else {
      throw SealedFileError(
        .ioFailed, path: name,
        detail: installation == SQLITE_MISUSE
          ? "another copy of the sealed VFS is in this process" : "SQLite refuses the VFS")
    }
  }

  private static let installation: Int32 = {
    guard sqlite3_initialize() == SQLITE_OK, let base = unsafe sqlite3_vfs_find("unix") else {
      return SQLITE_ERROR
    }
    // Ours would hide the other, and with it the keys that it knows.
    guard unsafe sqlite3_vfs_find(name) == nil else { return SQLITE_MISUSE }
    return unsafe sqlite3_vfs_register(VFSCallbacks.makeVFS(over: base), 1)
  }()

  /// Registers a second sealed VFS, over another than "unix", that is not the default: for tests that
  /// record or fail what reaches the disk in unnamed files too, for which there is no registration.
  package static func install(as name: String, over base: String) throws(SealedFileError) {
    try install()
    guard let vfs = unsafe sqlite3_vfs_find(base),
      unsafe sqlite3_vfs_register(VFSCallbacks.makeVFS(named: name, over: vfs), 0) == SQLITE_OK
    else {
      throw SealedFileError(.invalidArgument, path: name, detail: "there is no VFS \(base)")
    }
  }

  /// Registers a key for the database at `path`, which need not exist yet, and installs the VFS.
  ///
  /// A later registration of the same path takes precedence for the connections opened after it.
  ///
  /// - Parameters:
  ///   - key: 32 bytes, copied.
  ///   - base: the VFS beneath; tests name a recording one.
  ///   - newFileID: the identity that a new file gets, 8 bytes; nil draws one. Should a file lie
  ///     there already, it keeps its own.
  ///   - setsReserve: promises that whoever creates the database sets `SQLITE_FCNTL_RESERVE_BYTES` to
  ///     40 first; `auto_vacuum` can then be chosen. By default a new database needs no such call.
  /// - Throws: `invalidArgument`, or `ioFailed` when the path cannot be made absolute.
  public static func register(
    key: borrowing SecretBytes, at path: FilePath, over base: String = "unix",
    newFileID: [UInt8]? = nil, setsReserve: Bool = false
  ) throws(SealedFileError) -> KeyRegistration {
    try install()
    let path = try fullPath(path)
    guard key.byteCount == XAES256GCM.keyByteCount else {
      throw SealedFileError(.invalidArgument, path: path, detail: "a key has 32 bytes")
    }
    let fileID = newFileID ?? RandomSource.system.bytes(count: SealedHeader.fileIDByteCount)
    guard fileID.count == SealedHeader.fileIDByteCount else {
      throw SealedFileError(.invalidArgument, path: path, detail: "a file id has 8 bytes")
    }
    guard base != name, let vfs = unsafe sqlite3_vfs_find(base) else {
      throw SealedFileError(.invalidArgument, path: path, detail: "there is no VFS \(base)")
    }
    return unsafe KeyRegistration(
      RegisteredKey(
        path: path, key: key.copy(), base: vfs, newFileID: fileID,
        emptyFile: setsReserve ? .bare : .standIn))
  }

  /// The path as SQLite names it at xOpen: absolute, symbolic links resolved.
  static func fullPath(_ path: FilePath) throws(SealedFileError) -> String {
    guard let vfs = unsafe sqlite3_vfs_find("unix") else {
      throw SealedFileError(.ioFailed, path: path.string, detail: "SQLite has no VFS unix")
    }
    var buffer = [CChar](repeating: 0, count: Int(unsafe vfs.pointee.mxPathname) + 1)
    let byteCount = Int32(buffer.count)
    let result = unsafe path.string.withCString { source in
      unsafe buffer.withUnsafeMutableBufferPointer { target in
        unsafe vfs.pointee.xFullPathname(vfs, source, byteCount, target.baseAddress)
      }
    }
    guard result == SQLITE_OK || result == SQLITE_OK_SYMLINK else {
      throw SealedFileError(.ioFailed, path: path.string, detail: "the path cannot be resolved")
    }
    let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// How far work on a whole database has come, for whoever shows it.
public struct PageProgress: Sendable, Equatable {
  /// Pages done; never more than ``pageCount``.
  public let completedPageCount: Int

  /// All pages, frames of the log included where they are part of the work.
  public let pageCount: Int

  /// Describes a moment of the work.
  package init(completedPageCount: Int, pageCount: Int) {
    self.completedPageCount = completedPageCount
    self.pageCount = pageCount
  }
}
