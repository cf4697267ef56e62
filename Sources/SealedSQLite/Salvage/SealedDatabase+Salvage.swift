package import FileLayer
public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Copies all rows that can still be reached into a new database, under the same key.
  ///
  /// As ``salvage(from:key:to:newKey:progress:)``.
  public static func salvage(
    from source: FilePath, key: borrowing SecretBytes, to destination: FilePath,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> Salvage {
    try salvage(from: source, key: key, to: destination, newKey: key, progress: progress)
  }

  /// Copies all rows that can still be reached into a new database: `docs/verify-and-salvage.md`.
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
  /// - Throws: `alreadyExists`, `diskFull`, and what ``verify(at:key:progress:)`` throws.
  public static func salvage(
    from source: FilePath, key: borrowing SecretBytes, to destination: FilePath,
    newKey: borrowing SecretBytes, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> Salvage {
    try salvage(
      from: source, key: key, to: destination, newKey: newKey, over: "unix",
      fileSystem: LinuxFileSystem(), progress: progress)
  }

  /// As above, over another VFS and file system: for tests that record or fail what reaches the disk.
  package static func salvage(
    from source: FilePath, key: borrowing SecretBytes, to destination: FilePath,
    newKey: borrowing SecretBytes, over base: String, fileSystem: any FileSystem,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> Salvage {
    try requireAbsent(destination, fileSystem)
    let side = FilePath(destination.string + "-salvage")
    do throws(SealedFileError) {
      return try withoutActuallyEscaping(progress) { progress throws(SealedFileError) in
        let image = try SealedImage(source, key: key, over: base, progress: { _ in })
        try prepare(side, like: source, fileSystem)
        do throws(SealedFileError) {
          let report = try copy(image, to: side, key: newKey, over: base, progress)
          try putInPlace(side, destination, fileSystem)
          return report
        } catch {
          discard(side, fileSystem)
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
  ) throws(SealedFileError) -> Salvage {
    let database = try NewDatabase(at: side, key: key, over: base)
    var salvager = Salvager(CountedPages(image, progress), into: database)
    return try salvager.run()
  }

  private static func requireAbsent(
    _ destination: FilePath, _ fileSystem: any FileSystem
  ) throws(SealedDatabaseError) {
    for suffix in ["", "-wal", "-journal"] {
      let path = FilePath(destination.string + suffix)
      do throws(FileError) {
        if try fileSystem.status(of: path) == nil { continue }
      } catch {
        throw SealedDatabaseError(.inputOutput, error.description, underlying: error)
      }
      throw SealedDatabaseError(
        .alreadyExists, "\(path): there is a file already", hint: "name another place")
    }
  }

  /// Makes the side file, for nobody but those who may use the source.
  private static func prepare(
    _ side: FilePath, like source: FilePath, _ fileSystem: any FileSystem
  ) throws(SealedFileError) {
    discard(side, fileSystem)
    do throws(FileError) {
      guard let status = try fileSystem.status(of: source) else {
        throw FileError(.status, source, .noSuchFileOrDirectory)
      }
      let file = try fileSystem.create(side, permissions: status.permissions)
      defer { file.close() }
      try file.changeOwner(to: status.owner)
    } catch {
      throw SealedFileError(error, side)
    }
  }

  private static func putInPlace(
    _ side: FilePath, _ destination: FilePath, _ fileSystem: any FileSystem
  ) throws(SealedFileError) {
    do throws(FileError) {
      try fileSystem.rename(side, to: destination)
      try fileSystem.synchronizeDirectory(destination.containingDirectory)
    } catch {
      throw SealedFileError(error, destination)
    }
  }

  private static func discard(_ side: FilePath, _ fileSystem: any FileSystem) {
    for suffix in ["", "-journal"] {
      try? fileSystem.remove(FilePath(side.string + suffix))
    }
  }
}
