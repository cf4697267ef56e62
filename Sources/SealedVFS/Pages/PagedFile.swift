internal import CSQLite
internal import Glibc
internal import VaultCrypto

/// A database file of any format: it reads and writes whole pages, and answers SQLite's few short
/// reads.
///
/// The ``PageCodec`` defines the form of a page on disk. The subclasses, ``MainFile`` and
/// ``SQLCipherFile``, identify the file and decide what can be written.
class PagedFile: SealedFile {
  /// The ciphers in use; ``MainFile`` replaces them if the file turns out to have another identity.
  var codec: any PageCodec

  /// Whether bytes 0..15 are on disk and known to match ``codec``.
  var isIdentityKnown = false

  /// The database's size after the last commit, as page 1 states it; nil before it was read.
  ///
  /// SQLite also reads pages beyond it that are not on disk. Such a page has just moved, to make
  /// room for the root of a table in an auto-vacuum database.
  var knownPageCount: UInt32?

  /// Whether this connection has read or written page 1, here or in the log.
  var knowsPageOne = false

  /// Whether pages that the file lacks can be in its log.
  func hasFramesInLog() throws(ResultCode) -> Bool { false }

  /// One sealed page, and one opened page for short reads.
  let sealed = Scratch(byteCount: PageLayout.byteCount)
  let opened = Scratch(byteCount: PageLayout.byteCount)

  /// The sealed pages that a scan reads next.
  var readAhead = ReadAhead(of: PageLayout.byteCount)

  /// Whether this is the target of `VACUUM INTO`; while such a file is empty, it shows as empty.
  let isVacuumTarget: Bool

  /// Whether an empty file shows a header; SQLite then cannot set its page size, as `VACUUM INTO`
  /// does.
  var showsStandIn: Bool { !isVacuumTarget && registered.emptyFile == .standIn }

  init(
    base: BaseFile, registered: RegisteredKey, codec: any PageCodec, isVacuumTarget: Bool = false
  ) {
    self.codec = codec
    self.isVacuumTarget = isVacuumTarget
    super.init(base: base, registered: registered, faults: RecentFaults(partOf: registered.faults))
  }

  /// Identifies the file by its first 16 bytes, or fewer; records the reason for a refusal.
  func identify(_ identity: [UInt8]) throws(ResultCode) {
    preconditionFailure("each page format identifies its files")
  }

  /// Records that a page does not open.
  func answerDamage(of number: UInt32) -> ResultCode {
    fail(.damagedPage, page: number, SQLITE_IOERR_DATA)
  }

  /// Seals a page and writes it.
  func writePage(_ number: UInt32, from source: UnsafeRawPointer) throws(ResultCode) {
    preconditionFailure("each page format writes its pages")
  }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    guard byteCount == PageLayout.byteCount, let number = PageLayout.pageNumber(at: offset) else {
      return try unsafe readPart(of: target, byteCount, at: offset)
    }
    try unsafe readPage(number, into: target)
    if number == 1 { try unsafe noteTruncation(page: target) }
  }

  override func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    guard byteCount == PageLayout.byteCount, let number = PageLayout.pageNumber(at: offset) else {
      throw fail(.otherPageSize, SQLITE_IOERR_WRITE)
    }
    readAhead.forget()
    try unsafe writePage(number, from: source)
  }

  override func lock(_ level: Int32) throws(ResultCode) {
    readAhead.forget()
    try base.lock(level)
  }

  override func unlock(_ level: Int32) throws(ResultCode) {
    readAhead.forget()
    try base.unlock(level)
  }

  override func lockShared(
    _ offset: Int32, _ count: Int32, _ flags: Int32
  ) throws(ResultCode) {
    readAhead.forget()
    try base.lockShared(offset, count, flags)
  }

  /// Truncates the file at the next page boundary.
  ///
  /// A backup from smaller pages truncates the database in the middle of a page.
  override func truncate(to byteCount: Int64) throws(ResultCode) {
    readAhead.forget()
    if byteCount == 0 { isIdentityKnown = false }
    let rest = byteCount % Int64(PageLayout.byteCount)
    if rest == 0 { return try base.truncate(to: byteCount) }
    let wholeByteCount = byteCount - rest + Int64(PageLayout.byteCount)
    if try base.byteCount() > wholeByteCount { try base.truncate(to: wholeByteCount) }
  }

  override func byteCount() throws(ResultCode) -> Int64 {
    let byteCount = try base.sealedByteCount()
    if byteCount == 0 { isIdentityKnown = false }
    return byteCount
  }
}

extension PagedFile {
  /// Reads and opens a page.
  func readPage(_ number: UInt32, into target: UnsafeMutableRawPointer) throws(ResultCode) {
    let offset = PageLayout.offset(ofPage: number)
    if let page = unsafe readAhead.piece(at: offset, of: base) {
      return try unsafe openPage(page, number, into: target)
    }
    do throws(ResultCode) {
      try unsafe base.read(sealed.pointer, PageLayout.byteCount, at: offset)
    } catch  where error.isShortRead {
      try unsafe answerShortRead(of: number, into: target)
    }
    try unsafe openPage(sealed.pointer, number, into: target)
  }

  private func openPage(
    _ sealed: UnsafeRawPointer, _ number: UInt32, into target: UnsafeMutableRawPointer
  ) throws(ResultCode) {
    if number == 1 || !isIdentityKnown {
      try unsafe checkIdentity(
        number == 1 ? UnsafeRawBufferPointer(start: sealed, count: 16) : nil)
    }
    // Another header on disk: a copy in the log or the journal identified this file.
    guard unsafe number != 1 || memcmp(sealed, codec.identity, codec.identity.count) == 0,
      try unsafe ResultCode.translatingCryptoErrors(
        codec.open(sealed, number: number, into: target))
    else { throw answerDamage(of: number) }
    if number == 1 { unsafe notePageOne(target) }
  }

  /// Reads a few bytes of one page.
  ///
  /// SQLite does so in two places, both on page 1. It reads 100 bytes at 0 when it opens the file,
  /// before any recovery. It reads 16 bytes at 24 in rollback mode.
  func readPart(
    of target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    let start = Int(offset % Int64(PageLayout.byteCount))
    guard start + byteCount <= PageLayout.byteCount,
      let number = PageLayout.pageNumber(at: offset - Int64(start))
    else { throw ResultCode(SQLITE_IOERR_READ) }
    do throws(ResultCode) {
      try unsafe readPage(number, into: opened.pointer)
      unsafe target.copyMemory(from: opened.pointer + start, byteCount: byteCount)
    } catch {
      switch error.value {
      case SQLITE_IOERR_SHORT_READ where offset == 0 && showsStandIn,
        SQLITE_IOERR_DATA where offset == 0:
        // A torn page 1 can have a good copy in the log or journal: let SQLite open those.
        unsafe StandInHeader.write(to: target, byteCount)
      case SQLITE_IOERR_SHORT_READ:
        unsafe memset(target, 0, byteCount)
        throw error
      case SQLITE_IOERR_DATA where number == 1:
        // SQLite tests whether the file has changed. These bytes make it read the whole page again.
        unsafe memset(target, 0xFF, byteCount)
      default: throw error
      }
    }
  }

  /// Keeps the size that page 1 states, when it is read or, for a commit, written.
  func notePageOne(_ page: UnsafeRawPointer) {
    knowsPageOne = true
    if let count = unsafe page.statedPageCount { knownPageCount = count }
  }

  /// Answers a read past the end of the file.
  ///
  /// In an empty file SQLite expects zeros. In any other, the page is lost, and zeros would be a
  /// wrong answer.
  private func answerShortRead(
    of number: UInt32, into target: UnsafeMutableRawPointer
  ) throws(ResultCode) -> Never {
    unsafe memset(target, 0, PageLayout.byteCount)
    let byteCount = try base.sealedByteCount()
    if let knownPageCount, number > knownPageCount { throw ResultCode(SQLITE_IOERR_SHORT_READ) }
    if byteCount == 0 {
      isIdentityKnown = false
      knownPageCount = 0
      throw ResultCode(SQLITE_IOERR_SHORT_READ)
    }
    // The present part of page 1 identifies the file; the rest of the page is missing.
    try unsafe checkIdentity(number == 1 && byteCount >= 16 ? sealed.bytes(0..<16) : nil)
    throw fail(.truncated, page: number, number == 1 ? SQLITE_IOERR_DATA : SQLITE_CORRUPT)
  }

  /// Learns the identity of a file that is not empty, before its log or journal is opened.
  ///
  /// Another process can have made the file since this connection looked.
  func learnIdentity() throws(ResultCode) {
    if try base.sealedByteCount() > 0 { try unsafe checkIdentity(nil) }
  }

  /// Identifies the file by its first 16 bytes, which it reads if they are not given.
  func checkIdentity(_ bytes: UnsafeRawBufferPointer?) throws(ResultCode) {
    if let bytes = unsafe bytes {
      if isIdentityKnown, unsafe bytes.elementsEqual(codec.identity) { return }
      return try unsafe identify(Array(bytes))
    }
    do throws(ResultCode) {
      try unsafe base.read(opened.pointer, PageLayout.identityByteCount, at: 0)
    } catch  where error.isShortRead {
      return try identify([])
    }
    let found = unsafe opened.bytes(0..<PageLayout.identityByteCount)
    if isIdentityKnown, unsafe found.elementsEqual(codec.identity) { return }
    try unsafe identify(Array(found))
  }

  /// Records why SQLite will refuse a file that is shorter than page 1 states.
  ///
  /// Nothing is recorded if the log has frames, because the missing pages can be there.
  func noteTruncation(page: UnsafeRawPointer) throws(ResultCode) {
    guard let pageCount = unsafe page.statedPageCount, try !hasFramesInLog(),
      try base.sealedByteCount() < Int64(pageCount) * Int64(PageLayout.byteCount)
    else { return }
    fail(.truncated, page: pageCount, SQLITE_CORRUPT)
  }
}

/// The header that SQLite is shown for a page 1 that is torn or does not exist yet.
enum StandInHeader {
  /// Page size 4096, versions 1 and 1, reserve 40, payload fractions 64, 32, 32, from offset 16.
  private static let fields: [UInt8] = [
    0x10, 0x00, 1, 1, UInt8(PageLayout.reservedByteCount), 64, 32, 32,
  ]

  static func write(to target: UnsafeMutableRawPointer, _ byteCount: Int) {
    let header = PageLayout.plainIdentity + fields
    unsafe memset(target, 0, byteCount)
    unsafe target.copyMemory(from: header, byteCount: min(byteCount, header.count))
  }
}
