public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Seals a whole database under a new key.
  ///
  /// Every page is opened and sealed again, pages of the log included, into a copy that then
  /// replaces the database. The disk must have room for the copy. The file keeps its identity and
  /// its journal mode. The change is durable on return, and the old key then opens only freed
  /// blocks of the disk. If the process is killed, the database is whole under either the old or
  /// the new key. A second call with the same keys then finishes the change if it is unfinished.
  ///
  /// All connections must be closed, in every process. Store the new key durably *before* this
  /// call, and keep the old one until it returns.
  ///
  /// - Parameters:
  ///   - path: the database's file.
  ///   - oldKey: the present key, 32 bytes.
  ///   - newKey: the new key, 32 bytes.
  ///   - busyTimeout: how long to wait for other connections to close. Default: one second.
  ///   - progress: receives the number of pages sealed, after each mebibyte and at the end.
  /// - Returns: the frames that the log's recovery left out, as at an opening; usually nil.
  /// - Throws: `busy` while others hold the file; `readOnly` if the file or its directory cannot be
  ///   written; `sameKey`; `wrongKey` and the other codes of an opening; `damagedPage`,
  ///   `truncated`; `diskFull`. The database, its journal mode included, is then unchanged.
  @discardableResult
  public static func changeKey(
    at path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    busyTimeout: Duration = .seconds(1), progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> DiscardedLogTail? {
    try SealedVFS.reencrypt(
      path, from: oldKey, to: newKey, busyTimeout: busyTimeout, progress: progress)
  }
}
