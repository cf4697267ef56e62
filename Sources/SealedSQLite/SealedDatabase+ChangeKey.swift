package import FileLayer
internal import SealedVFS
package import SystemPackage
package import VaultCrypto

extension SealedDatabase {
  /// Seals the whole database under a new key, with its identity kept.
  ///
  /// Everyone must have closed it. Durable on return; killed at any moment, the database opens with
  /// the old key or with the new one. Nothing is done when it is under the new key already.
  ///
  /// - Throws: `busy` when it is open elsewhere, `wrongKey`, `damaged`, `absent`.
  package static func changeKey(
    at path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    over base: String = "unix", fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedDatabaseError) {
    do throws(SealedFileError) {
      try SealedVFS.reencrypt(path, from: oldKey, to: newKey, over: base, fileSystem: fileSystem)
    } catch {
      throw SealedDatabaseError(error)
    }
  }
}
