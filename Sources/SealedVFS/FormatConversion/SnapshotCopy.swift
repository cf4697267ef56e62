internal import CSQLite
package import SystemPackage
package import VaultCrypto

/// Copies one state of a sealed database page by page, while other connections and processes change it.
///
/// The state is that of the moment when this object was made: it holds a read transaction until it is released. As long,
/// no process can get exclusive use of the database.
package final class SnapshotCopy {
  /// The pages of one step; a progress report follows each.
  private static let pagesAtOnce: Int32 = 256

  private let source: OwnConnection
  private let registration: KeyRegistration
  private let path: String

  /// The frames that the log's recovery left out when this connection opened it.
  package var discardedLogTail: DiscardedLogTail? { registration.discardedLogTail }

  /// Begins to read.
  ///
  /// - Throws: `busy` if another connection has exclusive use of the database; `wrongKey`, `notFound`, `damagedPage`.
  package init(
    of path: FilePath, key: borrowing SecretBytes, over base: String = "unix",
    busyTimeout: Duration
  ) throws(SealedDatabaseError) {
    let full = try SealedVFS.fullPath(path)
    try SealedVFS.require(key: key, at: path, over: base)
    let registration = try SealedVFS.register(key: key, at: path, over: base)
    // It can write, so that the last connection removes its log.
    source = try OwnConnection(
      full, vfs: SealedVFS.name, isReadOnly: false, busyTimeout: busyTimeout
    ) { result, _ in registration.explain(result, full) }
    self.registration = registration
    self.path = full
    guard unsafe SealedConnection.vfsName(of: source.pointer) == SealedVFS.name else {
      throw SealedDatabaseError(.notOnSealedVFS, path: full)
    }
    for sql in ["PRAGMA query_only = ON", "BEGIN", "SELECT count(*) FROM sqlite_schema"] {
      try source.run(sql)
    }
  }

  deinit { source.close() }

  /// Writes the state to a new sealed database, which is whole and durable on return.
  ///
  /// The copy has the journal mode DELETE, so that it can be read where no file can be made.
  ///
  /// - Parameter target: of ``CopyTarget/sealed(_:key:newFileID:over:fileSystem:)``.
  /// - Throws: `damagedPage` if a page does not open; `diskFull`, `inputOutput`.
  package func run(
    into target: CopyTarget, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    let explain: (Int32, String) -> SealedDatabaseError = { [registration] result, message in
      registration.fault(reportedAs: result)
        ?? target.registration?.explain(result, target.path.string)
        ?? SealedDatabaseError(.sqlite, path: target.path.string, detail: message)
    }
    let copy = try OwnConnection(
      target.side.string, vfs: target.vfs, isReadOnly: false, explain: explain)
    defer { copy.close() }
    // A file that is either whole or absent needs no journal.
    for sql in ["PRAGMA journal_mode = OFF", "PRAGMA synchronous = FULL"] { try copy.run(sql) }
    guard
      let backup = unsafe sqlite3_backup_init(copy.pointer, "main", source.pointer, "main")
    else { throw explain(unsafe sqlite3_extended_errcode(copy.pointer), "") }
    var result = SQLITE_OK
    while result == SQLITE_OK {
      result = unsafe sqlite3_backup_step(backup, Self.pagesAtOnce)
      let (rest, all) = unsafe (sqlite3_backup_remaining(backup), sqlite3_backup_pagecount(backup))
      progress(PageProgress(completedPageCount: Int(all - rest), pageCount: Int(all)))
    }
    unsafe sqlite3_backup_finish(backup)
    guard result == SQLITE_DONE else { throw explain(result, "") }
    try copy.run("PRAGMA journal_mode = DELETE")
    copy.close()
    try target.finish()
  }
}
