internal import CSQLite
internal import Glibc
internal import VaultCrypto

/// The main file of a sealed database.
///
/// The log and journal of the same connection use its keys and nonces.
@safe final class MainFile: PagedFile {
  /// Header and ciphers in use; replaced if the file on disk turns out to have another identity.
  private(set) var keys: FileKeys {
    didSet { codec = keys.page }
  }
  var nonces = NonceSequence(random: .unshared())

  /// The sealed page that a checkpoint has just read from the log; one write can use it.
  var checkpointed: CheckpointedPage?
  private(set) var isCheckpointing = false

  /// The log, while it is open on this connection; the log sets and clears this property.
  // Not weak: a weak reference costs each change of a lock more than all our other work there.
  unowned(unsafe) var log: LogFile?
  /// The place where SQLite stores the connection that uses this file; valid while the file is
  /// open.
  private var connection: UnsafeMutablePointer<OpaquePointer?>?

  /// The database's size before the transaction that is rolled back, if SQLite has just read it from the
  /// journal; nil after the next step.
  ///
  /// Before SQLite reads a record, it extends a file that is shorter: `pager_truncate` of pager.c writes a page of
  /// zeros in the place of the last page.
  var rollbackPageCount: UInt32?

  /// Whether SQLite got an error for a damaged or missing page, here or in the log.
  var hasMetDamage = false {
    didSet { if hasMetDamage { faults.noteDamage() } }
  }

  init(
    base: BaseFile, registered: RegisteredKey, isVacuumTarget: Bool
  ) throws(CryptoError) {
    let header = try SealedHeader(fileID: registered.newFileID, key: registered.key)
    keys = try FileKeys(header: header, key: registered.key)
    super.init(
      base: base, registered: registered, codec: keys.page, isVacuumTarget: isVacuumTarget)
    KeyRegistry.noteOpening(of: registered.path)
  }

  deinit { KeyRegistry.noteClosing(of: registered.path) }

  /// Each mismatch is a different error.
  ///
  /// If the first bytes are damaged, a header copy in the log or the journal identifies the file. SQLite then
  /// restores or overrides page 1.
  override func identify(_ identity: [UInt8]) throws(ResultCode) {
    let header: SealedHeader
    do throws(SealedDatabaseError) {
      header = try self.header(of: FileInspection(firstBytes: identity))
    } catch {
      // Another process can have recovered the database, and removed its journal, since these bytes were read.
      if error.code == .notSealed || error.code == .inputOutput,
        let present = try storedIdentity(), present != identity
      {
        return try identify(present)
      }
      switch error.code {
      case .busy: throw record(error, SQLITE_BUSY)
      case .inputOutput:
        throw record(error, error.isOutOfMemory ? SQLITE_NOMEM : SQLITE_IOERR_READ)
      default: throw record(error, SQLITE_NOTADB)
      }
    }
    if header != keys.header {
      keys = try ResultCode.translatingCryptoErrors(
        FileKeys(header: header, key: registered.key))
    }
    isIdentityKnown = true
  }

  /// Returns the stated header if it matches the key, or else a copy from the log or the journal that restores it.
  private func header(of stated: FileInspection) throws(SealedDatabaseError) -> SealedHeader {
    let path = registered.path
    switch stated {
    case .sealed(let header):
      guard try header.matches(key: registered.key, at: path) else {
        throw SealedDatabaseError(.wrongKey, path: path)
      }
      return header
    case .absent, .empty, .foreign:
      let files = unsafe DatabaseFiles(path: path, vfs: registered.base)
      if let copied = try files.restorableHeader(of: base, under: registered.key) { return copied }
      return try stated.header(at: path)
    case .plainSQLite, .newerVersion: return try stated.header(at: path)
    }
  }

  /// The first 16 bytes on disk; nil if the file is shorter.
  private func storedIdentity() throws(ResultCode) -> [UInt8]? {
    do throws(ResultCode) {
      return try base.bytes(SealedHeader.byteCount, at: 0)
    } catch  where error.isShortRead {
      return nil
    }
  }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    do throws(ResultCode) {
      try unsafe super.read(target, byteCount, at: offset)
    } catch {
      let isPage = byteCount == PageLayout.byteCount && offset % Int64(byteCount) == 0
      if isPage && !error.isShortRead { hasMetDamage = true }
      throw error
    }
  }

  override func hasFramesInLog() throws(ResultCode) -> Bool {
    guard let log = unsafe log else { return false }
    return try log.base.byteCount() > LogLayout.headerByteCount
  }

  /// Seals a page and writes it, or copies the sealed page that a checkpoint has read.
  override func writePage(_ number: UInt32, from source: UnsafeRawPointer) throws(ResultCode) {
    if isCheckpointing && !knowsPageOne { throw ResultCode(SQLITE_BUSY) }  // see mustKeepLog
    if !isIdentityKnown { try settleIdentity() }
    let offset = PageLayout.offset(ofPage: number)
    if try unsafe extendsFile(number, with: source) {
      // Sealed, the zeros would pass for what the page held. The journal can still have it.
      return try unsafe base.write(source, PageLayout.byteCount, at: offset)
    }
    if let page = checkpointed {
      checkpointed = nil
      if isCheckpointing, unsafe page.isWhat(source, isWrittenAs: number) {
        return try write(page, at: offset)
      }
    }
    try unsafe seal(source, number: number, into: sealed.pointer)
    try unsafe base.write(sealed.pointer, PageLayout.byteCount, at: offset)
  }

  override func synchronize(_ flags: Int32) throws(ResultCode) {
    nonces.end()
    try base.synchronize(flags)
  }

  override func lock(_ level: Int32) throws(ResultCode) {
    if level == SQLITE_LOCK_EXCLUSIVE {
      if mustKeepLog { throw ResultCode(SQLITE_BUSY) }
      // The last connection to close would delete the log at this path, which is another file's now.
      if base.hasMoved { throw fail(.fileReplaced, SQLITE_IOERR_LOCK) }
    }
    if level == SQLITE_LOCK_SHARED {
      // SQLite passes its connection to each file. A VFS above that hides this file keeps it back, too.
      if unsafe connection == nil { throw fail(.hiddenByVFS, SQLITE_CANTOPEN) }
      if refusesVacuum { throw ResultCode(SQLITE_AUTH) }
    }
    try super.lock(level)
    if level >= SQLITE_LOCK_RESERVED { nonces.end() }
    // A key change puts a new file in this one's place: the old one must not be read any more.
    if level == SQLITE_LOCK_SHARED && base.hasMoved {
      try? base.unlock(SQLITE_LOCK_NONE)  // report the replacement, not this error
      throw fail(.fileReplaced, SQLITE_IOERR_LOCK)
    }
  }

  override func mapShared(
    _ region: Int32, _ byteCount: Int32, _ isExtending: Int32,
    _ target: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) throws(ResultCode) {
    let index = registered.path + "-shm"
    if region == 0, unsafe BaseFile.isNoRegularFile(index) {
      throw record(.notRegularFile(index, of: registered.path), SQLITE_CANTOPEN)
    }
    let mayHaveCommitted = unsafe log?.mayHaveCommitted ?? false
    try unsafe base.mapShared(
      region, byteCount, isExtending, target, namesFullDisk: !mayHaveCommitted)
  }

  override func lockShared(
    _ offset: Int32, _ count: Int32, _ flags: Int32
  ) throws(ResultCode) {
    if flags & SQLITE_SHM_LOCK != 0 && flags & SQLITE_SHM_SHARED != 0 && refusesVacuum {
      throw ResultCode(SQLITE_AUTH)
    }
    let writeAndCheckpointLocks: Int32 = 2  // WAL_WRITE_LOCK and WAL_CKPT_LOCK of wal.c
    if offset < writeAndCheckpointLocks && flags & SQLITE_SHM_EXCLUSIVE != 0 {
      nonces.end()
      if offset == 0 { unsafe log?.endTransaction() }
    }
    try super.lockShared(offset, count, flags)
    let takesWriteLock =
      offset == 0 && flags & SQLITE_SHM_LOCK != 0 && flags & SQLITE_SHM_EXCLUSIVE != 0
    // Another connection has the new file, and can delete the log that a commit here would be in.
    if takesWriteLock && base.hasMoved {
      // Report the replacement, not this error.
      try? super.lockShared(offset, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      throw fail(.fileReplaced, SQLITE_READONLY_DBMOVED)
    }
  }

  override func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    switch operation {
    case SQLITE_FCNTL_CKPT_START:
      isCheckpointing = true
      unsafe log?.readAhead.forget()
    case SQLITE_FCNTL_CKPT_DONE:
      isCheckpointing = false
      checkpointed = nil
    case SQLITE_FCNTL_PDB:
      unsafe connection = argument?.assumingMemoryBound(to: OpaquePointer?.self)
    default: break
    }
    return unsafe base.control(operation, argument)
  }

  /// Whether to refuse the connection's `VACUUM INTO`; records the reason.
  private var refusesVacuum: Bool {
    guard let connection = unsafe connection?.pointee,
      let fault = unsafe VacuumTarget.fault(of: connection)
    else { return false }
    // The target finds the fault, too, but is closed with its faults before SQLite reports it.
    let main = unsafe SealedConnection.file(of: connection, "main")
    (main ?? self).record(fault, SQLITE_AUTH)
    return true
  }

  /// Whether this connection must not checkpoint and delete the log when it closes as the last one.
  ///
  /// This holds after it has found damage, or if it never read page 1. The log can hold the only
  /// copy of some pages. A connection that was refused at opening leaves the files as they were.
  var mustKeepLog: Bool { unsafe log != nil && (hasMetDamage || !knowsPageOne) }
}

/// A page that a checkpoint has read from the log and authenticated, and has not written yet.
///
/// It lies in the log's scratch memory. It is valid until the next call on the log or the next
/// write.
@safe struct CheckpointedPage {
  let number: UInt32
  /// The memory into which SQLite got the opened page, and from which it writes.
  let target: UnsafeRawPointer
  /// The opened page as SQLite got it, and the sealed page.
  let opened: UnsafeRawPointer
  let sealed: UnsafeRawPointer

  /// Whether SQLite writes exactly this page.
  func isWhat(_ source: UnsafeRawPointer, isWrittenAs number: UInt32) -> Bool {
    unsafe number == self.number && source == target
      && memcmp(source, opened, PageLayout.byteCount) == 0
  }
}

extension MainFile {
  /// Seals a page, for the database or for its log.
  func seal(
    _ source: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) throws(ResultCode) {
    if number == 1 {
      if let fault = unsafe codec.fault(inPageOne: source) { throw fail(fault, SQLITE_IOERR_WRITE) }
      unsafe notePageOne(source)
    }
    let hasRoom = try unsafe ResultCode.translatingCryptoErrors(
      keys.page.seal(source, number: number, into: target, nonces: &nonces))
    guard hasRoom else {
      throw fail(.reserveInUse, page: number, SQLITE_IOERR_WRITE)
    }
  }

  /// Whether SQLite, before it rolls back, makes the file as long as it was: the last pages are lost.
  ///
  /// A transaction, or a record of the journal, can hold a page of zeros that belongs to the database.
  private func extendsFile(
    _ number: UInt32, with source: UnsafeRawPointer
  ) throws(ResultCode) -> Bool {
    guard let pageCount = rollbackPageCount else { return false }
    rollbackPageCount = nil
    guard number == pageCount else { return false }
    let byteCount = try base.byteCount()
    return unsafe byteCount <= PageLayout.offset(ofPage: number)
      && UnsafeRawBufferPointer(start: source, count: PageLayout.byteCount).isZero
  }

  /// Copies a sealed page of the log into the database.
  ///
  /// Page 1 was opened under this file's header. The 16 clear bytes of its frame are not
  /// authenticated there, and must not become the header of the database.
  private func write(_ page: CheckpointedPage, at offset: Int64) throws(ResultCode) {
    guard page.number == 1 else {
      return try unsafe base.write(page.sealed, PageLayout.byteCount, at: offset)
    }
    unsafe sealed.pointer.copyMemory(from: page.sealed, byteCount: PageLayout.byteCount)
    unsafe sealed.pointer.copyMemory(from: codec.identity, byteCount: SealedHeader.byteCount)
    try unsafe base.write(sealed.pointer, PageLayout.byteCount, at: offset)
  }

  /// Makes the file's identity durable before its first page is written.
  ///
  /// A rollback of an interrupted first transaction needs the file id. A power cut can keep any of
  /// its pages without page 1. The sync is therefore needed, once in the life of a file.
  private func settleIdentity() throws(ResultCode) {
    if try base.sealedByteCount() > 0 {
      return try unsafe checkIdentity(nil)  // another connection was first
    }
    let bytes = codec.identity
    unsafe opened.pointer.copyMemory(from: bytes, byteCount: bytes.count)
    try unsafe base.write(opened.pointer, bytes.count, at: 0)
    try base.synchronize(SQLITE_SYNC_NORMAL)
    isIdentityKnown = true
  }
}
