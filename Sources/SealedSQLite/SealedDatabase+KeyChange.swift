package import FileLayer
public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Seals a whole database under a new key.
  ///
  /// Every page is opened and sealed again, the log's too, into a copy that then takes the database's
  /// place; there must be room for it. The file keeps its identity and its journal mode. On return the
  /// change is durable, and no page under the old key is left but in freed blocks of the disk. Killed
  /// at any moment, the database is whole under the old key or under the new one; a second call with
  /// the same keys then finishes, or finds that nothing is left to do.
  ///
  /// All connections must be closed, in every process. Keep the new key durably *before* you call
  /// this, and the old one until it has returned.
  ///
  /// - Parameters:
  ///   - path: the database's file.
  ///   - oldKey: 32 bytes, the key that the database has.
  ///   - newKey: 32 bytes.
  ///   - patience: how long to wait for other connections to close. Default: one second.
  ///   - progress: told of the pages sealed, after each mebibyte and at the end.
  /// - Returns: what the recovery of the log left out, as at an opening; nil as a rule.
  /// - Throws: `busy` while others hold the file; `readOnly` when the file or its directory may not
  ///   be written; `sameKey`; `wrongKey` and the other codes of an opening; `damagedPage`,
  ///   `truncated`; `diskFull`. The database is as it was then, its journal mode included.
  @discardableResult
  public static func changeKey(
    at path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    patience: Duration = .seconds(1), progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> DiscardedLogTail? {
    try changeKey(
      at: path, from: oldKey, to: newKey, patience: patience, over: "unix",
      fileSystem: LinuxFileSystem(), progress: progress)
  }

  /// As above, over another VFS and file system: for tests that record or fail what reaches the disk.
  @discardableResult
  package static func changeKey(
    at path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    patience: Duration, over base: String, fileSystem: any FileSystem,
    progress: (PageProgress) -> Void
  ) throws(SealedDatabaseError) -> DiscardedLogTail? {
    do throws(SealedFileError) {
      return try SealedVFS.reencrypt(
        path, from: oldKey, to: newKey, over: base, fileSystem: fileSystem, patience: patience,
        progress: progress)
    } catch {
      throw SealedDatabaseError(error)
    }
  }
}
