internal import CSQLite
package import FileLayer
package import SystemPackage
package import VaultCrypto

/// A connection that has a database to itself: EXCLUSIVE lock held, the log's index in its memory.
///
/// It is taken before a change of key is decided, so that "busy" is said while nothing has changed.
/// The lock goes with the connection; the journal mode stays what it was.
@safe package final class ExclusiveConnection {
  private let connection: OpaquePointer
  let path: FilePath
  private let registration: KeyRegistration

  /// The database's own file, on the sealed VFS.
  let file: MainFile

  /// Opens the database and keeps everyone else out.
  ///
  /// - Parameter patience: how long to wait for others to leave.
  /// - Throws: `busy` when others are there; `readOnly`; nothing is changed then.
  package init(
    to path: FilePath, key: borrowing SecretBytes, over base: String = "unix",
    patience: Duration = .zero
  ) throws(SealedFileError) {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.inspect(path, over: base).require(key: key, at: path, exists: true)
    try WriteAccess.require(to: FilePath(full))
    let registration = try SealedVFS.register(key: key, at: path, over: base)
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOMUTEX
    let result = unsafe sqlite3_open_v2(full, &opened, flags, SealedVFS.name)
    guard result == SQLITE_OK, let connection = unsafe opened else {
      unsafe sqlite3_close_v2(opened)
      throw registration.explain(result, full)
    }
    do throws(SealedFileError) {
      try unsafe Self.takeOver(connection, full, registration, patience)
      guard let file = unsafe SealedConnection.file(of: connection, "main") else {
        throw SealedFileError(.notOnSealedVFS, path: full)
      }
      self.file = file
    } catch {
      unsafe sqlite3_close_v2(connection)
      throw error
    }
    unsafe self.connection = connection
    self.path = FilePath(full)
    self.registration = registration
  }

  deinit {
    unsafe sqlite3_close_v2(connection)
  }

  /// What the recovery of the log left out, when this connection opened it.
  package var discardedLogTail: DiscardedLogTail? { registration.discardedLogTail }

  /// Moves all that is in the log into the database, durably, and empties the log.
  func checkpoint() throws(SealedFileError) {
    let result = unsafe sqlite3_wal_checkpoint_v2(
      connection, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    guard result == SQLITE_OK else { throw explain(result) }
    try unsafe Self.requireExclusiveLock(connection, path.string)
  }

  private func explain(_ result: Int32) -> SealedFileError {
    registration.explain(unsafe max(result, sqlite3_extended_errcode(connection)), path.string)
  }

  /// Takes the EXCLUSIVE lock for as long as the connection lives.
  ///
  /// Set before the first access, `locking_mode=EXCLUSIVE` means in WAL mode too the lock of the whole
  /// file: one connection that has the log open, even an idle one, is in its way.
  private static func takeOver(
    _ connection: OpaquePointer, _ path: String, _ registration: KeyRegistration,
    _ patience: Duration
  ) throws(SealedFileError) {
    unsafe sqlite3_extended_result_codes(connection, 1)
    unsafe sqlite3_busy_timeout(connection, patience.wholeMilliseconds)
    if unsafe sqlite3_db_readonly(connection, "main") == 1 {
      throw SealedFileError(.readOnly, path: path)
    }
    for sql in [
      "PRAGMA temp_store = MEMORY", "PRAGMA synchronous = FULL", "PRAGMA locking_mode = EXCLUSIVE",
      "BEGIN EXCLUSIVE", "COMMIT",
    ] {
      let result = unsafe sqlite3_exec(connection, sql, nil, nil, nil)
      guard result == SQLITE_OK else { throw registration.explain(result, path) }
    }
    try unsafe requireExclusiveLock(connection, path)
  }

  private static func requireExclusiveLock(
    _ connection: OpaquePointer, _ path: String
  ) throws(SealedFileError) {
    var state: Int32 = 0
    _ = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_LOCKSTATE, &state)
    guard state == SQLITE_LOCK_EXCLUSIVE else { throw SealedFileError(.busy, path: path) }
  }
}

extension KeyRegistration {
  /// The reason for a result code: what the VFS recorded, or what the code says.
  func explain(_ result: Int32, _ path: String) -> SealedFileError {
    switch result & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED: return SealedFileError(.busy, path: path)
    case SQLITE_FULL: return SealedFileError(.diskFull, path: path)
    default: break
    }
    if let found = fault(reportedAs: result) { return found }
    if result & 0xFF == SQLITE_READONLY { return SealedFileError(.readOnly, path: path) }
    let words = unsafe sqlite3_errstr(result).map { unsafe String(cString: $0) }
    return SealedFileError(.ioFailed, path: path, detail: words)
  }
}

extension Duration {
  /// For SQLite's busy timeout, which ends at the largest `Int32`.
  fileprivate var wholeMilliseconds: Int32 {
    Int32(clamping: components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
  }
}

extension ExclusiveConnection {
  /// Seals the whole database under a new key: `docs/reference/sealed-database-format.md`, "Change of key".
  ///
  /// The file id stays. The new file is durable on return; killed at any moment, the database is
  /// whole under the old key or under the new one, and the header's key check tells which. This
  /// connection then holds the old file: let it go.
  ///
  /// - Parameter fileSystem: makes the new file, renames and synchronizes it.
  /// - Throws: `damagedPage` when a page does not open, `sameKey`, `readOnly`, `diskFull`,
  ///   `ioFailed`: the old file stands then, unless it was its directory that could not be
  ///   synchronized.
  package func reencrypt(
    to newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem(),
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedFileError) {
    try writeCopy(under: newKey, fileSystem: fileSystem, progress: progress)
    try putCopyInPlace(fileSystem: fileSystem)
  }

  /// The first half of ``reencrypt(to:fileSystem:progress:)``: empties the log, and writes the whole
  /// database under the new key to the side name, durably.
  ///
  /// All that can go wrong with the pages or for want of space goes wrong here, where the database
  /// is as it was and the side file is removed again.
  package func writeCopy(
    under newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem(),
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedFileError) {
    guard let header = try? SealedHeader(fileID: file.keys.header.fileID, key: newKey) else {
      throw SealedFileError(.invalidArgument, path: path.string, detail: "a key has 32 bytes")
    }
    // Not the keys are compared but what tells them apart afterwards.
    guard header != file.keys.header else {
      throw SealedFileError(.sameKey, path: path.string)
    }
    let status = try SealedFileError.translating(path) { () throws(FileError) in
      try fileSystem.status(of: path)
    }
    guard let status else { throw SealedFileError(.absent, path: path.string) }
    let side = AtomicFileReplacement(replacing: path, fileSystem)
    let copy = try side.create(permissions: status.permissions)
    do throws(SealedFileError) {
      defer { copy.close() }
      try checkpoint()
      try write(PageCopy(file, header: header, key: newKey), to: copy, progress)
      try SealedFileError.translating(path) { () throws(FileError) in
        try copy.changeOwner(to: status.owner)
        try copy.synchronize()
      }
    } catch {
      side.discard()
      throw error
    }
  }

  /// The second half: puts the copy in the database's place, durably.
  ///
  /// The log is empty, a journal done with, and nobody shares an index: where they are there they go
  /// first, because they do not belong to the new file. Should a power cut bring them back, they
  /// hold nothing that opens there.
  package func putCopyInPlace(
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) {
    try AtomicFileReplacement(replacing: path, fileSystem)
      .putInPlace(removing: ["-wal", "-shm", "-journal"])
  }

  /// Removes a copy that is not to be used.
  package func discardCopy(fileSystem: any FileSystem = LinuxFileSystem()) {
    AtomicFileReplacement(replacing: path, fileSystem).discard()
  }

  private func write(
    _ pages: consuming PageCopy, to file: any WritableFile, _ progress: (PageProgress) -> Void
  ) throws(SealedFileError) {
    while let piece = try pages.next() {
      try SealedFileError.translating(path) { () throws(FileError) in try file.write(piece) }
      progress(
        PageProgress(
          completedPageCount: Int(pages.completedPageCount), pageCount: Int(pages.pageCount)))
    }
  }
}
