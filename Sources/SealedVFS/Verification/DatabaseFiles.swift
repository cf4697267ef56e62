internal import CSQLite
internal import FileLayer
internal import SystemPackage

/// A database, its log and its journal on the underlying VFS.
@safe struct DatabaseFiles {
  /// The full path of the database, as SQLite passes it to xOpen.
  let path: String
  let vfs: UnsafeMutablePointer<sqlite3_vfs>
}

extension DatabaseFiles {
  /// - Throws: `invalidArgument` if there is no VFS of this name.
  init(_ path: FilePath, over base: String) throws(SealedDatabaseError) {
    let full = try SealedVFS.fullPath(path)
    try unsafe self.init(path: full, vfs: SealedVFS.underlying(base, for: full))
  }

  /// The status of the database's file, which is not opened.
  ///
  /// - Returns: nil for a missing file, and for one that another VFS keeps outside the file system.
  func status() throws(SealedDatabaseError) -> FileStatus? {
    do throws(FileError) {
      return try LinuxFileSystem().status(of: FilePath(path))
    } catch {
      throw SealedDatabaseError(.inputOutput, path: path, detail: "\(error.errno)")
    }
  }

  /// Opens the database; nil if it does not exist.
  func open(
    exists: Bool = false, isLockable: Bool = true
  ) throws(SealedDatabaseError) -> LockedInputFile? {
    let access = isLockable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
    return try unsafe LockedInputFile(
      path, SQLITE_OPEN_MAIN_DB | access, over: vfs, exists: exists)
  }

  /// Opens the database, which must be a regular file.
  func openDatabase() throws(SealedDatabaseError) -> LockedInputFile {
    let status = try status()
    if let status, status.kind != .regular { throw SealedDatabaseError(.notSealed, path: path) }
    guard let file = try open(exists: status != nil) else {
      throw SealedDatabaseError(.notFound, path: path)
    }
    return file
  }

  /// Opens the write-ahead log; nil if it does not exist.
  func log() throws(SealedDatabaseError) -> LockedInputFile? {
    try unsafe LockedInputFile(path + "-wal", SQLITE_OPEN_WAL | SQLITE_OPEN_READONLY, over: vfs)
  }

  /// Opens the rollback journal; nil if it does not exist.
  func journal() throws(SealedDatabaseError) -> LockedInputFile? {
    try unsafe LockedInputFile(
      path + "-journal", SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_READONLY, over: vfs)
  }

  /// Requires that neither log nor journal holds changes that belong in the database.
  ///
  /// - Throws: `notClosed`, with the file's name.
  func requireClosed() throws(SealedDatabaseError) {
    if let log = try log(), try log.byteCount() > 0 {
      throw SealedDatabaseError(.notClosed, path: path, detail: "\(log.path) holds changes")
    }
    // SQLite zeroes the start of a journal that is finished.
    if let journal = try journal(), case let byteCount = try journal.byteCount(), byteCount > 0,
      try journal.bytes(Int(min(byteCount, 8)), at: 0).contains(where: { $0 != 0 })
    {
      throw SealedDatabaseError(
        .notClosed, path: path, detail: "\(journal.path) holds an unfinished transaction")
    }
  }
}

extension SealedVFS {
  /// The VFS of this name, for a database at `path`.
  static func underlying(
    _ base: String, for path: String
  ) throws(SealedDatabaseError) -> UnsafeMutablePointer<sqlite3_vfs> {
    guard base != name, let vfs = unsafe sqlite3_vfs_find(base) else {
      throw SealedDatabaseError(.invalidArgument, path: path, detail: "there is no VFS \(base)")
    }
    return unsafe vfs
  }
}
