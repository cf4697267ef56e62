internal import CSQLite
package import FileLayer
internal import Glibc
package import SystemPackage
package import VaultCrypto

/// A connection with exclusive use of a database: it holds EXCLUSIVE, and the log's index in
/// memory.
///
/// A key change opens it before it decides anything, so that `busy` is thrown before anything has
/// changed. Closing the connection releases the lock. The journal mode does not change.
package final class ExclusiveConnection {
  private let connection: OwnConnection
  let path: FilePath
  private let registration: KeyRegistration

  /// The database's own file, on the sealed VFS.
  let file: MainFile

  /// Opens the database and locks all other connections out.
  ///
  /// - Parameter busyTimeout: how long to wait for other connections to close.
  /// - Throws: `busy` while another connection is open; `readOnly`. Nothing is changed then.
  package init(
    to path: FilePath, key: borrowing SecretBytes, over base: String = "unix",
    busyTimeout: Duration = .zero
  ) throws(SealedDatabaseError) {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.require(key: key, at: path, over: base)
    try Self.requireWriteAccess(to: FilePath(full))
    let registration = try SealedVFS.register(key: key, at: path, over: base)
    self.registration = registration
    self.path = FilePath(full)
    connection = try OwnConnection(
      full, vfs: SealedVFS.name, isReadOnly: false, busyTimeout: busyTimeout
    ) { result, _ in registration.explain(result, full) }
    if unsafe sqlite3_db_readonly(connection.pointer, "main") == 1 {
      throw SealedDatabaseError(.readOnly, path: full)
    }
    // Set before the first access, the locking mode locks the whole file in WAL mode, too. Any
    // other connection with the log open, even an idle one, prevents the lock.
    for sql in [
      "PRAGMA temp_store = MEMORY", "PRAGMA synchronous = FULL", "PRAGMA locking_mode = EXCLUSIVE",
      "BEGIN EXCLUSIVE", "COMMIT",
    ] {
      try connection.run(sql)
    }
    try Self.requireExclusiveLock(connection, full)
    guard let file = unsafe SealedConnection.file(of: connection.pointer, "main") else {
      throw SealedDatabaseError(.notOnSealedVFS, path: full)
    }
    self.file = file
  }

  /// The frames that the log's recovery left out when this connection opened it.
  package var discardedLogTail: DiscardedLogTail? { registration.discardedLogTail }

  /// Moves all pages of the log into the database, durably, and empties the log.
  func checkpoint() throws(SealedDatabaseError) {
    let result = unsafe sqlite3_wal_checkpoint_v2(
      connection.pointer, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    guard result == SQLITE_OK else {
      let code = unsafe max(result, sqlite3_extended_errcode(connection.pointer))
      throw registration.explain(code, path.string)
    }
    try Self.requireExclusiveLock(connection, path.string)
  }

  /// Checks that this process can replace a database, before anything is changed.
  ///
  /// SQLite opens a file that it cannot write for reading, and reports the reason late.
  ///
  /// - Throws: `readOnly` if this process cannot write the file or its directory.
  private static func requireWriteAccess(to path: FilePath) throws(SealedDatabaseError) {
    for place in [path, path.containingDirectory] {
      guard unsafe faccessat(AT_FDCWD, place.string, W_OK, AT_EACCESS) != 0 else { continue }
      switch Errno(rawValue: errno) {
      case .permissionDenied, .readOnlyFileSystem, .notPermitted:
        throw SealedDatabaseError(.readOnly, path: path.string, detail: "\(place) is read-only")
      default: break  // the next open gives a better reason
      }
    }
  }

  private static func requireExclusiveLock(
    _ connection: OwnConnection, _ path: String
  ) throws(SealedDatabaseError) {
    var state: Int32 = 0
    _ = unsafe sqlite3_file_control(
      connection.pointer, "main", SQLITE_FCNTL_LOCKSTATE, &state)
    guard state == SQLITE_LOCK_EXCLUSIVE else { throw SealedDatabaseError(.busy, path: path) }
  }
}

extension ExclusiveConnection {
  /// Seals the whole database under a new key, as
  /// ``SealedVFS/reencrypt(_:from:to:over:fileSystem:busyTimeout:progress:)`` does.
  ///
  /// Afterwards this connection holds the old file: release it.
  ///
  /// - Parameter fileSystem: makes the new file, renames and synchronizes it.
  /// - Throws: `damagedPage` if a page does not open, `sameKey`, `readOnly`, `diskFull`,
  ///   `inputOutput`. The old file is then still in place, unless only the sync of its directory
  ///   failed.
  package func reencrypt(
    to newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem(),
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    try writeCopy(under: newKey, fileSystem: fileSystem, progress: progress)
    try putCopyInPlace(fileSystem: fileSystem)
  }

  /// Empties the log, and writes the whole database under the new key to the temporary name,
  /// durably.
  ///
  /// This is the first half of ``reencrypt(to:fileSystem:progress:)``. A damaged page or a full
  /// disk fails here. The database is then unchanged, and the temporary file is removed.
  package func writeCopy(
    under newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem(),
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    guard newKey.byteCount == KeySource.keyByteCount else {
      throw SealedDatabaseError(
        .invalidArgument, path: path.string, detail: "a key must have 32 bytes")
    }
    let header = try translatingCryptoErrors(
      at: path.string, SealedHeader(fileID: file.keys.header.fileID, key: newKey))
    // Compares the headers, because afterwards only they tell the keys apart.
    guard header != file.keys.header else {
      throw SealedDatabaseError(.sameKey, path: path.string)
    }
    guard let status = try translatingFileErrors(fileSystem.status(of: path)) else {
      throw SealedDatabaseError(.notFound, path: path.string)
    }
    let side = AtomicFileReplacement(replacing: path, fileSystem)
    let copy = try side.create(permissions: status.permissions)
    do throws(SealedDatabaseError) {
      defer { copy.close() }
      try checkpoint()
      try write(PageCopy(file, header: header, key: newKey), to: copy, progress)
      try translatingFileErrors(copy.changeOwner(to: status.owner))
      try translatingFileErrors(copy.synchronize())
    } catch {
      side.discard()
      throw error
    }
  }

  /// Replaces the database with the copy, durably; the second half of a key change.
  ///
  /// The log is empty, the journal finished, and no connection uses the index. These files do not
  /// belong to the new file, and are removed first. If a power cut brings them back, nothing in
  /// them opens under the new key.
  package func putCopyInPlace(
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedDatabaseError) {
    try AtomicFileReplacement(replacing: path, fileSystem)
      .putInPlace(removing: ["-wal", "-shm", "-journal"])
  }

  /// Removes a copy that is not needed.
  package func discardCopy(fileSystem: any FileSystem = LinuxFileSystem()) {
    AtomicFileReplacement(replacing: path, fileSystem).discard()
  }

  private func write(
    _ pages: consuming PageCopy, to file: any WritableFile, _ progress: (PageProgress) -> Void
  ) throws(SealedDatabaseError) {
    while let piece = try pages.next() {
      try translatingFileErrors(file.write(piece))
      progress(
        PageProgress(
          completedPageCount: Int(pages.completedPageCount), pageCount: Int(pages.pageCount)))
    }
  }
}
