internal import CSQLite
package import FileLayer
package import SystemPackage
package import VaultCrypto

extension SealedVFS {
  /// Seals a whole database under a new key: `docs/sealed-database-format.md`, "Change of key".
  ///
  /// The file id stays. All connections must be closed, in every process. The new file is durable on
  /// return; killed at any moment, the database is whole under the old key or under the new one, and
  /// the header's key check tells which. A database that is already under the new key stays as it is.
  ///
  /// - Parameter base: the VFS beneath; `fileSystem` makes the new file, renames and synchronizes it.
  /// - Throws: `busy` when the database is open elsewhere; `damagedPage` when a page does not open:
  ///   the old file stands then.
  package static func reencrypt(
    _ path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    over base: String = "unix", fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) {
    let full = FilePath(try fullPath(path))
    if case .sealed(let header) = try inspect(full, over: base), header.matches(key: newKey) {
      // An earlier change got this far; its rename may not be durable yet.
      do throws(FileError) {
        return try fileSystem.synchronizeDirectory(full.removingLastComponent())
      } catch {
        throw SealedFileError(error, full)
      }
    }
    let connection = try ExclusiveConnection(to: full, key: oldKey, over: base)
    try connection.reencrypt(to: newKey, fileSystem: fileSystem)
  }
}
