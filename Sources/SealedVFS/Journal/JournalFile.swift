internal import Glibc
internal import VaultCrypto

/// The rollback journal: sealed headers and page records, without checksums of plaintext.
///
/// Reads and writes are distinguished by length and offset, as pager.c makes them. There are
/// headers of 512 bytes at multiples of 512, and their first 12 bytes again. A record takes three
/// writes of 4, 4096 and 4 bytes. A super-journal pointer takes five. Any other call is refused.
final class JournalFile: SealedFile {
  let main: MainFile

  /// The full path of the journal, as a super-journal lists it.
  let path: [UInt8]

  /// The checked name of the super-journal and its end, set after SQLite read the magic that ends the pointer.
  ///
  /// SQLite reads the name next, unless it has no memory for it. It can then read the pointer again.
  var superJournalName: (bytes: [UInt8], end: Int64)?

  /// One record, or one header, as it is on disk.
  let sealed = Scratch(byteCount: JournalLayout.recordByteCount)

  /// The headers read or written so far; the offset distinguishes a header's word from a page
  /// number.
  var headers: [JournalHeader] = []

  /// The checksum that SQLite gets for the record read last, and the offset at which it asks for
  /// it.
  var checksum: (offset: Int64, value: UInt32)?

  /// Whether this handle wrote the journal: a record that does not open is then an error.
  private(set) var hasWritten = false

  /// The end of the last record that this handle wrote since the first header; 0 if there is none.
  private(set) var recordsEnd: Int64 = 0

  private var hasUnsynchronizedRecords = false
  private var announced: (offset: Int64, word: UInt32)?
  private var pageEnd: Int64 = -1

  init(base: BaseFile, main: MainFile, path: [UInt8]) {
    self.main = main
    self.path = path
    super.init(base: base, registered: main.registered, faults: main.faults)
  }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    main.rollbackPageCount = nil
    try unsafe answer(target, byteCount, at: offset)
  }

  override func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    hasWritten = true
    main.rollbackPageCount = nil
    let isAligned = offset % Int64(JournalLayout.headerByteCount) == 0
    switch byteCount {
    case JournalLayout.headerByteCount where isAligned:
      try unsafe writeHeader(source, at: offset)
    case JournalLayout.countedByteCount where headers.contains { $0.offset == offset }:
      try unsafe writeCount(source, at: offset)
    case JournalLayout.fieldsByteCount where offset == 0:
      try erase(JournalLayout.sealedByteCount, at: 0)
    case 1 where isAligned:
      try erase(JournalLayout.magicByteCount, at: offset)
    case PageLayout.byteCount:
      try unsafe writePage(source, at: offset)
    case 4 where offset == pageEnd:
      try writeMark(at: offset)  // in place of the checksum, which samples plaintext
    case 4:
      unsafe announced = (offset, source.bigEndianWord(at: 0))
      try unsafe base.write(source, 4, at: offset)
    default:
      try unsafe writeSuperJournalPart(source, byteCount, at: offset)
    }
  }

  override func truncate(to byteCount: Int64) throws(ResultCode) {
    headers.removeAll { $0.offset >= byteCount }
    recordsEnd = min(recordsEnd, byteCount)
    try base.truncate(to: byteCount)
  }

  override func synchronize(_ flags: Int32) throws(ResultCode) {
    defer { main.nonces.end() }
    try base.synchronize(flags)
    hasUnsynchronizedRecords = false
  }

  private func writeHeader(_ source: UnsafeRawPointer, at offset: Int64) throws(ResultCode) {
    headers.removeAll { $0.offset >= offset }
    recordsEnd = min(recordsEnd, offset)
    let words = unsafe JournalHeader.words(from: source + JournalLayout.encryptedOffset)
    guard words[4] == UInt32(PageLayout.byteCount) else {
      throw fail(.otherPageSize, SQLITE_IOERR_WRITE)
    }
    let hasMagic = unsafe source.load(as: UInt8.self) != 0
    let header = JournalHeader(
      offset: offset, count: hasMagic ? .unsynchronized : .none, words: words)
    headers.append(header)
    unsafe memset(sealed.pointer, 0, JournalLayout.headerByteCount)
    unsafe (sealed.pointer + JournalLayout.databaseHeaderOffset).copyMemory(
      from: main.keys.page.identity, byteCount: SealedHeader.byteCount)
    try write(header, byteCount: JournalLayout.headerByteCount)
  }

  /// Writes magic and record count, which make the journal hot.
  private func writeCount(_ source: UnsafeRawPointer, at offset: Int64) throws(ResultCode) {
    guard let index = headers.firstIndex(where: { $0.offset == offset }) else {
      throw ResultCode(SQLITE_IOERR_WRITE)
    }
    unsafe headers[index].words[0] = source.bigEndianWord(at: JournalLayout.encryptedOffset)
    headers[index].count = hasUnsynchronizedRecords ? .unsynchronized : .synchronized
    try write(headers[index], byteCount: JournalLayout.sealedByteCount)
  }

  private func write(_ header: JournalHeader, byteCount: Int) throws(ResultCode) {
    try unsafe ResultCode.translatingCryptoErrors(
      header.seal(
        into: sealed.pointer, cipher: main.keys.journal, nonces: &main.nonces))
    try unsafe base.write(sealed.pointer, byteCount, at: header.offset)
  }

  /// Writes a mark that distinguishes the last record from one that an earlier journal left behind.
  private func writeMark(at offset: Int64) throws(ResultCode) {
    guard let header = header(before: offset) else { throw ResultCode(SQLITE_IOERR_WRITE) }
    unsafe sealed.pointer.storeBigEndian(header.checksumSeed, at: 0)
    try unsafe base.write(sealed.pointer, 4, at: offset)
    recordsEnd = max(recordsEnd, offset + 4)
  }

  /// The header of the segment that contains an offset.
  func header(before offset: Int64) -> JournalHeader? {
    headers.filter { $0.offset < offset }.max { $0.offset < $1.offset }
  }

  /// Overwrites a header or a magic with zeros.
  private func erase(_ byteCount: Int, at offset: Int64) throws(ResultCode) {
    headers.removeAll { $0.offset == offset }
    recordsEnd = min(recordsEnd, offset)
    unsafe memset(sealed.pointer, 0, byteCount)
    try unsafe base.write(sealed.pointer, byteCount, at: offset)
  }

  private func writePage(_ source: UnsafeRawPointer, at offset: Int64) throws(ResultCode) {
    guard let announced, announced.offset == offset - 4 else {
      throw ResultCode(SQLITE_IOERR_WRITE)
    }
    let hasRoom = try unsafe ResultCode.translatingCryptoErrors(
      main.keys.journal.seal(
        source, number: announced.word, into: sealed.pointer, nonces: &main.nonces))
    guard hasRoom else { throw fail(.reserveInUse, page: announced.word, SQLITE_IOERR_WRITE) }
    hasUnsynchronizedRecords = true
    pageEnd = offset + Int64(PageLayout.byteCount)
    try unsafe base.write(sealed.pointer, PageLayout.byteCount, at: offset)
  }

  /// Writes a super-journal's name after its mark, or the magic at the very end, both in the clear.
  private func writeSuperJournalPart(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    let isName =
      announced.map { $0.word == JournalLayout.superJournalMark && $0.offset == offset - 4 } == true
    let isMagic =
      unsafe byteCount == JournalLayout.magicByteCount
      && UnsafeRawBufferPointer(start: source, count: byteCount)
        .elementsEqual(JournalLayout.sqliteMagic)
    guard isName || isMagic else { throw ResultCode(SQLITE_IOERR_WRITE) }
    try unsafe base.write(source, byteCount, at: offset)
  }
}
