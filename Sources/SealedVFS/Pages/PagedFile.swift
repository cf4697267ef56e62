internal import CSQLite

/// A database file of any format: whole pages in, whole pages out, and the few short reads of SQLite.
///
/// What a page looks like on disk is its ``PageCodec``'s business; whose file it is, and what may be
/// written, is the subclass's: ``MainFile`` and ``SQLCipherFile``.
class PagedFile: SealedFile {
  /// The ciphers in use; ``MainFile`` changes them when the file turns out to have another identity.
  var codec: any PageCodec

  /// Whether bytes 0..15 on disk are known to be ``codec``'s.
  var isHeaderOnDisk = false

  /// The database's size after the last commit, as page 1 says; nil before it was read.
  ///
  /// SQLite reads pages beyond it that are not on disk: one that it has just moved away, to make
  /// room for the root of a table in a database that can shrink.
  var knownPageCount: UInt32?

  /// Whether this connection has read or written page 1, here or in the log.
  var knowsPageOne = false

  /// Whether pages that the file lacks may be in its log.
  var hasFramesInLog: Bool { false }

  /// One sealed page, and one opened page for short reads.
  let sealed = Scratch(byteCount: PageLayout.byteCount)
  let opened = Scratch(byteCount: PageLayout.byteCount)

  /// Sealed pages that come next in a scan.
  var readAhead = ReadAhead(of: PageLayout.byteCount)

  /// Whether this open of an empty file shows it as it is: the target of `VACUUM INTO`.
  let showsEmptyFileBare: Bool

  /// Whether an empty file shows a header: SQLite then cannot set its page size, as `VACUUM INTO` does.
  var showsStandIn: Bool { !showsEmptyFileBare && registered.emptyFile == .standIn }

  init(
    base: BaseFile, registered: RegisteredKey, codec: any PageCodec, showsEmptyFileBare: Bool
  ) {
    self.codec = codec
    self.showsEmptyFileBare = showsEmptyFileBare
    super.init(base: base, registered: registered, faults: RecentFaults(partOf: registered.faults))
  }

  /// Finds out whose file this is from its first 16 bytes, and records why it is not ours.
  func judge(_ identity: [UInt8]) -> Int32 { SQLITE_NOTADB }

  /// Records why a file that is too short for an identity is refused.
  func answerNoIdentity() -> Int32 { SQLITE_NOTADB }

  /// Records that a page does not open.
  func answerDamage(of number: UInt32) -> Int32 {
    fail(.damagedPage, page: number, SQLITE_IOERR_DATA)
  }

  /// Seals a page and writes it.
  func writePage(_ number: UInt32, from source: UnsafeRawPointer) -> Int32 { SQLITE_IOERR_WRITE }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    if byteCount == PageLayout.byteCount, let number = PageLayout.pageNumber(at: offset) {
      let result = unsafe readPage(number, into: target)
      if result == SQLITE_OK && number == 1 { unsafe noteTruncation(page: target) }
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
    readAhead.forget()
    return unsafe writePage(number, from: source)
  }

  override func lock(_ level: Int32) -> Int32 {
    readAhead.forget()
    return base.lock(level)
  }

  override func unlock(_ level: Int32) -> Int32 {
    readAhead.forget()
    return base.unlock(level)
  }

  override func lockShared(_ offset: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    readAhead.forget()
    return base.lockShared(offset, count, flags)
  }

  override func truncate(to byteCount: Int64) -> Int32 {
    readAhead.forget()
    if byteCount == 0 { isHeaderOnDisk = false }
    return base.truncate(to: byteCount)
  }

  override func byteCount(_ target: UnsafeMutablePointer<Int64>) -> Int32 {
    let result = unsafe base.sealedByteCount(target)
    if result == SQLITE_OK, unsafe target.pointee == 0 { isHeaderOnDisk = false }
    return result
  }
}
