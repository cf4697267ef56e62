internal import CSQLite
package import FileLayer
internal import Glibc
package import SystemPackage
package import VaultCrypto

extension SealedVFS {
  /// Seals a whole database under a new key: `docs/reference/sealed-database-format.md`, "Change of key".
  ///
  /// The file id stays. All connections must be closed, in every process. The new file is durable on
  /// return; killed at any moment, the database is whole under the old key or under the new one, and
  /// the header's key check tells which. A database that is already under the new key stays as it is.
  ///
  /// - Parameters:
  ///   - base: the VFS beneath; `fileSystem` makes the new file, renames and synchronizes it.
  ///   - patience: how long to wait for others to leave.
  ///   - progress: told after each mebibyte, and at the end.
  /// - Returns: what the recovery of the log left out; nil as a rule.
  /// - Throws: `busy` when the database is open elsewhere; `readOnly`; `sameKey`; `damagedPage` when
  ///   a page does not open; `diskFull`: the old file stands then.
  @discardableResult
  package static func reencrypt(
    _ path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    over base: String = "unix", fileSystem: any FileSystem = LinuxFileSystem(),
    patience: Duration = .zero, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedFileError) -> DiscardedLogTail? {
    let full = FilePath(try fullPath(path))
    if case .sealed(let header) = try inspect(full, over: base), header.matches(key: newKey) {
      if header.matches(key: oldKey) { throw SealedFileError(.sameKey, path: full.string) }
      // An earlier change got this far; its rename may not be durable yet.
      try SealedFileError.translating(full) { () throws(FileError) in
        try fileSystem.synchronizeDirectory(full.containingDirectory)
      }
      return nil
    }
    let connection = try ExclusiveConnection(
      to: full, key: oldKey, over: base, patience: patience)
    try connection.reencrypt(to: newKey, fileSystem: fileSystem, progress: progress)
    return connection.discardedLogTail
  }
}

/// Whether a database may be replaced: asked before anything is changed, because SQLite opens a file
/// that it may not write for reading, and says so late.
enum WriteAccess {
  /// - Throws: `readOnly` when the file or its directory may not be written by this process.
  static func require(to path: FilePath) throws(SealedFileError) {
    for place in [path, path.containingDirectory] {
      guard unsafe faccessat(AT_FDCWD, place.string, W_OK, AT_EACCESS) != 0 else { continue }
      switch Errno(rawValue: errno) {
      case .permissionDenied, .readOnlyFileSystem, .notPermitted:
        throw SealedFileError(.readOnly, path: path.string, detail: "\(place) is read-only")
      default: break  // what opens it next says it better
      }
    }
  }
}
