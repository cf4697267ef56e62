package import FileLayer
public import SealedVFS
internal import SystemPackage

extension SealedDatabase {
  /// Copies a whole database into a new file, from any format to any: `docs/exchange.md`.
  ///
  /// Rows with their row ids, schema, indexes, triggers, views, virtual tables, text encoding,
  /// `auto_vacuum`, `user_version` and `application_id` arrive; free space and the page size do not,
  /// and a sealed copy has an identity of its own. The source is opened read-only and stays as it
  /// is. A sealed one may be in use; others must be closed, and are held until the copy is done.
  ///
  /// The new file is whole and durable on return. Killed before, it is absent, and `.NAME.new` beside
  /// it may be a part of it, in the new format; the next copy to the name removes it.
  ///
  /// - Parameters:
  ///   - source: what to copy; nothing is left beside it.
  ///   - target: where to; nothing may lie there.
  ///   - progress: pages written, of those that the source has; called on the same thread.
  /// - Throws: `alreadyExists`, `absent`, `wrongKey`, `wrongKeyOrNotSQLCipher`, `notClosed`, `busy`,
  ///   `damaged`, `truncated`, `diskFull`, and the errors of ``openReader(at:key:configuration:)``.
  ///   `sqlite` for a schema that needs functions or collations that SQLite itself does not have.
  public static func copy(
    from source: borrowing DatabaseFile, to target: borrowing DatabaseFile,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    try copy(
      from: source, to: target, over: "unix", fileSystem: LinuxFileSystem(), progress: progress)
  }

  /// As above, on another VFS and file system: for tests that record or fail what reaches the disk.
  package static func copy(
    from source: borrowing DatabaseFile, to target: borrowing DatabaseFile, over base: String,
    fileSystem: any FileSystem, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    do throws(SealedFileError) {
      let made = try makeTarget(target, over: base, fileSystem)
      try DatabaseCopy(from: openSource(source, over: base), to: made).run(progress: progress)
    } catch {
      throw SealedDatabaseError(error)
    }
  }

  private static func makeTarget(
    _ file: borrowing DatabaseFile, over base: String, _ fileSystem: any FileSystem
  ) throws(SealedFileError) -> CopyTarget {
    switch file.encryption {
    case .sealed(let key):
      try .sealed(file.path, key: key, over: base, fileSystem: fileSystem)
    case .sqlcipher4(let key):
      try .sqlcipher4(file.path, key: key, over: base, fileSystem: fileSystem)
    case .none:
      try .plain(file.path, over: base, fileSystem: fileSystem)
    }
  }

  private static func openSource(
    _ file: borrowing DatabaseFile, over base: String
  ) throws(SealedFileError) -> CopySource {
    switch file.encryption {
    case .sealed(let key): try .sealed(file.path, key: key, over: base)
    case .sqlcipher4(let key): try .sqlcipher4(file.path, key: key, over: base)
    case .none: try .plain(file.path, over: base)
    }
  }
}
