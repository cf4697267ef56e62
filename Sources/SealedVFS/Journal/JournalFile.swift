internal import CSQLite
internal import Glibc

/// The rollback journal: sealed headers and page records, no checksums of plaintext.
///
/// What SQLite reads and writes is told apart by length and place, as pager.c does it: headers of
/// 512 bytes at multiples of 512, their first 12 bytes again, records in three writes of 4, 4096
/// and 4 bytes, a super-journal pointer in five. Anything else is refused.
final class JournalFile: SealedFile {
  let main: MainFile

  /// The full path, as a super-journal lists it.
  let path: [UInt8]

  /// The name that SQLite asks for next: it has read the magic that ends a super-journal pointer.
  var superJournalName: [UInt8]?

  /// One record, or a header, as on disk.
  let sealed = Scratch(byteCount: JournalLayout.recordByteCount)

  /// The headers met so far, by offset; a word of one is told from a page number by its place.
  var headers: [JournalHeader] = []

  /// What the record read last says in place of the stored checksum, and where SQLite asks for it.
  var checksum: (offset: Int64, value: UInt32)?

  /// Whether this handle made the journal: then a record that does not open is an error.
  private(set) var hasWritten = false

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
  ) -> Int32 {
    unsafe answer(target, byteCount, at: offset)
  }

  override func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    hasWritten = true
    let isAligned = offset % Int64(JournalLayout.headerByteCount) == 0
    switch byteCount {
    case JournalLayout.headerByteCount where isAligned:
      return unsafe writeHeader(source, at: offset)
    case JournalLayout.countedByteCount where headers.contains { $0.offset == offset }:
      return unsafe writeCount(source, at: offset)
    case JournalLayout.fieldsByteCount where offset == 0:
      return erase(JournalLayout.sealedByteCount, at: 0)
    case 1 where isAligned:
      return erase(JournalLayout.magicByteCount, at: offset)
    case PageLayout.byteCount:
      return unsafe writePage(source, at: offset)
    case 4 where offset == pageEnd:
      return writeMark(at: offset)  // the checksum samples plaintext: it is not stored
    case 4:
      unsafe announced = (offset, source.bigEndianWord(at: 0))
      return unsafe base.write(source, 4, at: offset)
    default:
      return unsafe writeSuperJournalPart(source, byteCount, at: offset)
    }
  }

  override func truncate(to byteCount: Int64) -> Int32 {
    headers.removeAll { $0.offset >= byteCount }
    return base.truncate(to: byteCount)
  }

  override func synchronize(_ flags: Int32) -> Int32 {
    let result = base.synchronize(flags)
    if result == SQLITE_OK { hasUnsynchronizedRecords = false }
    main.nonces.end()
    return result
  }

  private func writeHeader(_ source: UnsafeRawPointer, at offset: Int64) -> Int32 {
    headers.removeAll { $0.offset >= offset }
    let words = unsafe JournalHeader.words(from: source + JournalLayout.hiddenOffset)
    guard words[4] == UInt32(PageLayout.byteCount) else {
      return fail(.reserveInUse, SQLITE_IOERR_WRITE)  // another page size
    }
    let hasMagic = unsafe source.load(as: UInt8.self) != 0
    let header = JournalHeader(
      offset: offset, count: hasMagic ? .unsynchronized : .none, words: words)
    headers.append(header)
    unsafe memset(sealed.pointer, 0, JournalLayout.headerByteCount)
    return write(header, byteCount: JournalLayout.headerByteCount)
  }

  /// Magic and record count: from now on the journal is hot.
  private func writeCount(_ source: UnsafeRawPointer, at offset: Int64) -> Int32 {
    guard let index = headers.firstIndex(where: { $0.offset == offset }) else {
      return SQLITE_IOERR_WRITE
    }
    unsafe headers[index].words[0] = source.bigEndianWord(at: JournalLayout.hiddenOffset)
    headers[index].count = hasUnsynchronizedRecords ? .unsynchronized : .synchronized
    return write(headers[index], byteCount: JournalLayout.sealedByteCount)
  }

  private func write(_ header: JournalHeader, byteCount: Int) -> Int32 {
    guard
      unsafe header.seal(
        into: sealed.pointer, cipher: main.keys.journal, nonces: &main.nonces)
    else { return fail(.ioFailed, SQLITE_IOERR_WRITE) }
    return unsafe base.write(sealed.pointer, byteCount, at: header.offset)
  }

  /// Writes what tells the record before from one that an earlier journal left behind.
  private func writeMark(at offset: Int64) -> Int32 {
    guard let header = header(before: offset) else { return SQLITE_IOERR_WRITE }
    unsafe sealed.pointer.storeBigEndian(header.checksumSeed, at: 0)
    return unsafe base.write(sealed.pointer, 4, at: offset)
  }

  /// The header of the segment that a place lies in.
  func header(before offset: Int64) -> JournalHeader? {
    headers.filter { $0.offset < offset }.max { $0.offset < $1.offset }
  }

  /// Writes zeros over a header or a magic.
  private func erase(_ byteCount: Int, at offset: Int64) -> Int32 {
    headers.removeAll { $0.offset == offset }
    unsafe memset(sealed.pointer, 0, byteCount)
    return unsafe base.write(sealed.pointer, byteCount, at: offset)
  }

  private func writePage(_ source: UnsafeRawPointer, at offset: Int64) -> Int32 {
    guard let announced, announced.offset == offset - 4 else { return SQLITE_IOERR_WRITE }
    guard
      unsafe main.keys.journal.seal(
        source, number: announced.word, into: sealed.pointer, nonces: &main.nonces)
    else { return fail(.reserveInUse, page: announced.word, SQLITE_IOERR_WRITE) }
    hasUnsynchronizedRecords = true
    pageEnd = offset + Int64(PageLayout.byteCount)
    return unsafe base.write(sealed.pointer, PageLayout.byteCount, at: offset)
  }

  /// The name of a super-journal after its mark, or the magic at the very end: both clear.
  private func writeSuperJournalPart(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    let isName =
      announced.map { $0.word == JournalLayout.superJournalMark && $0.offset == offset - 4 } == true
    let isMagic =
      unsafe byteCount == JournalLayout.magicByteCount
      && UnsafeRawBufferPointer(start: source, count: byteCount)
        .elementsEqual(JournalLayout.sqliteMagic)
    guard isName || isMagic else { return SQLITE_IOERR_WRITE }
    return unsafe base.write(source, byteCount, at: offset)
  }
}
