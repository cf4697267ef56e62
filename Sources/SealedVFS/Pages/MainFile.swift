internal import CSQLite
internal import Glibc
internal import VaultCrypto

/// The database file itself: whole pages in, whole pages out, and the few short reads of SQLite.
///
/// Its log and journal, opened on the same connection, take their keys and nonces from here.
final class MainFile: SealedFile {
  /// Header and ciphers in use; replaced when the file on disk turns out to have another identity.
  private(set) var keys: FileKeys
  var nonces = NonceSequence()

  /// Whether bytes 0..15 on disk are known to be ``keys``' header.
  var isHeaderOnDisk = false

  /// The database's size after the last commit, as page 1 says; nil before it was read.
  ///
  /// SQLite reads pages beyond it that are not on disk: one that it has just moved away, to make
  /// room for the root of a table in a database that can shrink.
  var knownPageCount: UInt32?

  /// The page that a checkpoint has just read from the log, still sealed; one write may use it.
  var checkpointed: CheckpointedPage?
  private(set) var isCheckpointing = false

  /// The log, while it is open on this connection.
  weak var log: LogFile?
  /// Whether this connection has read or written page 1, here or in the log.
  var knowsPageOne = false
  /// Whether SQLite was told of a damaged or missing page, here or in the log.
  var hasMetDamage = false

  /// One sealed page, and one opened page for short reads.
  let sealed = Scratch(byteCount: PageLayout.byteCount)
  let opened = Scratch(byteCount: PageLayout.byteCount)

  /// Whether this open of an empty file shows it as it is: the target of `VACUUM INTO`.
  let showsEmptyFileBare: Bool

  init(
    base: BaseFile, registered: RegisteredKey, showsEmptyFileBare: Bool
  ) throws(CryptoError) {
    let header = try SealedHeader(fileID: registered.newFileID, key: registered.key)
    keys = try FileKeys(header: header, key: registered.key)
    self.showsEmptyFileBare = showsEmptyFileBare
    super.init(base: base, registered: registered, faults: RecentFaults(partOf: registered.faults))
  }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    if byteCount == PageLayout.byteCount, let number = PageLayout.pageNumber(at: offset) {
      let result = unsafe readPage(number, into: target)
      if result == SQLITE_OK {
        if number == 1 { unsafe noteTruncation(page: target) }
      } else if result != SQLITE_IOERR_SHORT_READ {
        hasMetDamage = true
      }
      return result
    }
    return unsafe readPart(of: target, byteCount, at: offset)
  }

  override func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    guard byteCount == PageLayout.byteCount, let number = PageLayout.pageNumber(at: offset) else {
      return fail(.reserveInUse, SQLITE_IOERR_WRITE)  // another page size
    }
    return unsafe writePage(number, from: source)
  }

  override func truncate(to byteCount: Int64) -> Int32 {
    if byteCount == 0 { isHeaderOnDisk = false }
    return base.truncate(to: byteCount)
  }

  override func synchronize(_ flags: Int32) -> Int32 {
    nonces.end()
    return base.synchronize(flags)
  }

  override func byteCount(_ target: UnsafeMutablePointer<Int64>) -> Int32 {
    let result = unsafe base.sealedByteCount(target)
    if result == SQLITE_OK, unsafe target.pointee == 0 { isHeaderOnDisk = false }
    return result
  }

  override func lock(_ level: Int32) -> Int32 {
    if level == SQLITE_LOCK_EXCLUSIVE && mustKeepLog { return SQLITE_BUSY }
    let result = base.lock(level)
    guard result == SQLITE_OK else { return result }
    if level >= SQLITE_LOCK_RESERVED { nonces.end() }
    // A change of key puts a new file in this one's place: the old one is not read any more.
    if level == SQLITE_LOCK_SHARED && base.hasMoved {
      _ = base.unlock(SQLITE_LOCK_NONE)
      return fail(.moved, SQLITE_IOERR_LOCK)
    }
    return SQLITE_OK
  }

  override func lockShared(_ offset: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    let writeAndCheckpointLocks: Int32 = 2  // WAL_WRITE_LOCK and WAL_CKPT_LOCK of wal.c
    if offset < writeAndCheckpointLocks && flags & SQLITE_SHM_EXCLUSIVE != 0 { nonces.end() }
    return base.lockShared(offset, count, flags)
  }

  override func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    switch operation {
    case SQLITE_FCNTL_CKPT_START: isCheckpointing = true
    case SQLITE_FCNTL_CKPT_DONE:
      isCheckpointing = false
      checkpointed = nil
    default: break
    }
    return unsafe base.control(operation, argument)
  }

  /// Whether this connection is not the one to bring the log into the database and delete it, as the
  /// last to close does: it has found damage, or it never got as far as page 1.
  ///
  /// What the log holds may be all that is left of some pages; whoever was refused at opening finds
  /// the files as they were.
  var mustKeepLog: Bool { log != nil && (hasMetDamage || !knowsPageOne) }

  /// Takes over the identity that the file has on disk, after its key check was found right.
  func adopt(_ header: SealedHeader) -> Bool {
    if header == keys.header {
      isHeaderOnDisk = true
      return true
    }
    guard let keys = try? FileKeys(header: header, key: registered.key) else { return false }
    self.keys = keys
    isHeaderOnDisk = true
    return true
  }
}

/// A page that a checkpoint read from the log, where it authenticated, and has not written yet.
///
/// It lasts until the next call on the log, whose scratch memory it lies in, or the next write.
@safe struct CheckpointedPage {
  let number: UInt32
  /// Where SQLite got the opened page: it writes from the same place.
  let target: UnsafeRawPointer
  /// The opened page as SQLite got it, and the sealed one.
  let opened: UnsafeRawPointer
  let sealed: UnsafeRawPointer

  /// Whether what SQLite writes is this page and nothing else.
  func isWhat(_ source: UnsafeRawPointer, isWrittenAs number: UInt32) -> Bool {
    unsafe number == self.number && source == target
      && memcmp(source, opened, PageLayout.byteCount) == 0
  }
}
