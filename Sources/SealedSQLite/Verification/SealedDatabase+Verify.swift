public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Reads every page of a database, every frame of its write-ahead log and every record of a hot
  /// journal, and names what does not authenticate; then has SQLite check that the contents of the
  /// pages agree: `docs/verify-and-salvage.md`.
  ///
  /// Nothing on disk is changed or made, and memory does not grow with the database. Nobody may have
  /// the database open in WAL mode meanwhile.
  ///
  /// - Parameters:
  ///   - path: the database's file.
  ///   - key: the 32 bytes that open it.
  ///   - checksContents: whether SQLite's `PRAGMA integrity_check` is run too, where every page is
  ///     authentic; true by default. It takes about as long again.
  ///   - progress: called after each block of pages or frames, on the same thread.
  /// - Returns: what was found; a damaged page is a finding, not an error.
  /// - Throws: `wrongKey`, `plainDatabase`, `notSealed`, `newerVersion`, `absent`, `busy`,
  ///   `inputOutput`.
  public static func verify(
    at path: FilePath, key: borrowing SecretBytes, checksContents: Bool = true,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> Verification {
    do throws(SealedFileError) {
      return try SealedVFS.verify(
        path, key: key, checksContents: checksContents, progress: progress)
    } catch {
      throw SealedDatabaseError(error)
    }
  }
}
