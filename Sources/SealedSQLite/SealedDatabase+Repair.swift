internal import SealedSalvage
public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Verifies every page of a database, every frame of its log and every record of a hot journal.
  ///
  /// The report lists all that does not authenticate. SQLite then checks that the contents of the
  /// pages agree: `docs/reference/verify-and-salvage.md`. Nothing on disk is changed or created, and the
  /// memory does not grow with the database. During the call, no other connection must have the
  /// database open in WAL mode.
  ///
  /// - Parameters:
  ///   - path: the database's file.
  ///   - key: the 32 bytes that open it.
  ///   - checksContents: whether to run SQLite's `PRAGMA integrity_check`, too, if every page is
  ///     authentic. It takes about the same time again. Default: true.
  ///   - progress: called after each block of pages or frames, on the same thread.
  /// - Returns: the findings; a damaged page is a finding, not an error.
  /// - Throws: `wrongKey`, `plainDatabase`, `notSealed`, `newerVersion`, `notFound`, `busy`,
  ///   `inputOutput`.
  public static func verify(
    at path: FilePath, key: borrowing SecretBytes, checksContents: Bool = true,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> VerificationReport {
    try SealedVFS.verify(path, key: key, checksContents: checksContents, progress: progress)
  }
}

extension SealedDatabase {
  /// Copies all rows that can still be reached into a new database, under the same key.
  ///
  /// See ``salvage(from:key:to:newKey:progress:)``.
  public static func salvage(
    from source: FilePath, key: borrowing SecretBytes, to destination: FilePath,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> SalvageReport {
    try salvage(from: source, key: key, to: destination, newKey: key, progress: progress)
  }

  /// Copies all rows that can still be reached into a new database: `docs/reference/verify-and-salvage.md`.
  ///
  /// The source is not changed. During the call, no other connection must have it open in WAL mode.
  /// The new database has a new file id. It is written under a temporary name and, once complete,
  /// renamed durably. If the process is killed before, the destination does not exist.
  ///
  /// - Parameters:
  ///   - destination: the path of the new database, which must be free.
  ///   - newKey: the 32 bytes that seal the new database.
  ///   - progress: called while pages of the source are read, on the same thread.
  /// - Returns: the numbers of rows copied and lost, by table.
  /// - Throws: `alreadyExists`, `diskFull`, and the errors of
  ///   ``verify(at:key:checksContents:progress:)``.
  public static func salvage(
    from source: FilePath, key: borrowing SecretBytes, to destination: FilePath,
    newKey: borrowing SecretBytes, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> SalvageReport {
    try SealedVFS.salvage(
      from: source, key: key, to: destination, newKey: newKey, progress: progress)
  }
}
