package import FileLayer
public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Reads every page of a database, every frame of its write-ahead log and every record of a hot
  /// journal, and names what does not authenticate; then has SQLite check that the contents of the
  /// pages agree: `docs/reference/verify-and-salvage.md`.
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
  ) throws(SealedDatabaseError) -> VerificationReport {
    do throws(SealedFileError) {
      return try SealedVFS.verify(
        path, key: key, checksContents: checksContents, progress: progress)
    } catch {
      throw SealedDatabaseError(error)
    }
  }
}

extension SealedDatabase {
  /// Copies all rows that can still be reached into a new database, under the same key.
  ///
  /// As ``salvage(from:key:to:newKey:progress:)``.
  public static func salvage(
    from source: FilePath, key: borrowing SecretBytes, to destination: FilePath,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> SalvageReport {
    try salvage(from: source, key: key, to: destination, newKey: key, progress: progress)
  }

  /// Copies all rows that can still be reached into a new database: `docs/reference/verify-and-salvage.md`.
  ///
  /// The source is not changed; nobody may have it open in WAL mode meanwhile. The new database has a
  /// file id of its own. It is written beside its place and put there, durably, when it is complete;
  /// killed before that, nothing is there.
  ///
  /// - Parameters:
  ///   - destination: where nothing may lie yet.
  ///   - newKey: the 32 bytes that seal the new database.
  ///   - progress: called while pages of the source are read, on the same thread.
  /// - Returns: what was copied and what is lost, by table.
  /// - Throws: `alreadyExists`, `diskFull`, and what ``verify(at:key:checksContents:progress:)`` throws.
  public static func salvage(
    from source: FilePath, key: borrowing SecretBytes, to destination: FilePath,
    newKey: borrowing SecretBytes, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> SalvageReport {
    try salvage(
      from: source, key: key, to: destination, newKey: newKey, over: "unix",
      fileSystem: LinuxFileSystem(), progress: progress)
  }

  /// As above, over another VFS and file system: for tests that record or fail what reaches the disk.
  ///
  /// - Parameter fileID: the id that the source must have, whatever its header states; nil takes that one.
  package static func salvage(
    from source: FilePath, key: borrowing SecretBytes, fileID: [UInt8]? = nil,
    to destination: FilePath, newKey: borrowing SecretBytes, over base: String,
    fileSystem: any FileSystem,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> SalvageReport {
    do throws(SealedFileError) {
      let side = try AtomicFileReplacement(newAt: destination, fileSystem)
      return try withoutActuallyEscaping(progress) { progress throws(SealedFileError) in
        let image = try SealedImage(
          source, key: key, fileID: fileID, over: base, progress: { _ in })
        // For nobody but those who may use the source.
        let lock = try side.claim(like: source)
        defer { lock.release() }
        do throws(SealedFileError) {
          let report = try copy(image, to: side.path, key: newKey, over: base, progress)
          try side.requireFreePlace()
          try side.putInPlace()
          return report
        } catch {
          side.discard()
          throw error
        }
      }
    } catch {
      throw SealedDatabaseError(error)
    }
  }

  /// Writes the side file; its connection is closed on return.
  private static func copy(
    _ image: SealedImage, to side: FilePath, key: borrowing SecretBytes, over base: String,
    _ progress: @escaping (PageProgress) -> Void
  ) throws(SealedFileError) -> SalvageReport {
    let database = try NewDatabase(at: side, key: key, over: base)
    var salvager = Salvager(CountedPages(image, progress), into: database)
    var report = try salvager.run()
    report.areLogAndJournalWhole = image.areLogAndJournalWhole
    report.discardedLogTail = image.discardedLogTail
    return report
  }
}
