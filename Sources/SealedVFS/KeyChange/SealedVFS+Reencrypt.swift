package import FileLayer
package import SystemPackage
package import VaultCrypto

extension SealedVFS {
  /// Seals a whole database under a new key: `docs/reference/sealed-database-format.md`, "Change of key".
  ///
  /// The file id stays. All connections must be closed, in every process. The new file is durable
  /// on return. If the process is killed, the database is whole under either the old or the new
  /// key, and the header's key check tells which. A database that is already under the new key
  /// stays as it is.
  ///
  /// - Parameters:
  ///   - base: the name of the underlying VFS; `fileSystem` makes the new file, renames and
  ///     synchronizes it.
  ///   - busyTimeout: how long to wait for other connections to close.
  ///   - progress: called after each mebibyte, and at the end.
  /// - Returns: the frames that the log's recovery left out; usually nil.
  /// - Throws: `busy` if the database is open elsewhere; `readOnly`; `sameKey`; `damagedPage` if a
  ///   page does not open; `diskFull`. The old file is then still in place.
  @discardableResult
  package static func reencrypt(
    _ path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    over base: String = "unix", fileSystem: any FileSystem = LinuxFileSystem(),
    busyTimeout: Duration = .zero, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> DiscardedLogTail? {
    let full = FilePath(try fullPath(path))
    if case .sealed(let header) = try inspect(full, over: base),
      try header.matches(key: newKey, at: full.string)
    {
      if try header.matches(key: oldKey, at: full.string) {
        throw SealedDatabaseError(.sameKey, path: full.string)
      }
      // An earlier key change got this far; its rename might not be durable yet.
      try translatingFileErrors(fileSystem.synchronizeDirectory(full.containingDirectory))
      return nil
    }
    let connection = try ExclusiveConnection(
      to: full, key: oldKey, over: base, busyTimeout: busyTimeout)
    try connection.reencrypt(to: newKey, fileSystem: fileSystem, progress: progress)
    return connection.discardedLogTail
  }
}
