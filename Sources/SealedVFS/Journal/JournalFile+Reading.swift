internal import CSQLite
internal import Glibc

extension JournalFile {
  /// Answers one of the reads of pager.c.
  func answer(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    if let name = superJournalName {
      superJournalName = nil
      return unsafe answer(target, byteCount, with: name)
    }
    switch byteCount {
    case 1 where offset == 0: return unsafe readHotByte(target)
    case JournalLayout.magicByteCount: return unsafe readMagic(target, at: offset)
    case PageLayout.byteCount: return unsafe readPage(target, at: offset)
    case 4: return unsafe readWord(target, at: offset)
    default: return SQLITE_IOERR_READ
    }
  }

  /// Gives SQLite the super-journal's name that was checked; the file can have changed since then.
  private func answer(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, with name: [UInt8]
  ) -> Int32 {
    unsafe memset(target, 0, byteCount)  // SQLite rolls back when it finds no name
    if name.count == byteCount { unsafe target.copyMemory(from: name, byteCount: byteCount) }
    return SQLITE_OK
  }

  /// Checks the super-journal pointer before SQLite rolls back, ignores the journal or deletes a
  /// file.
  private func checkSuperJournal() -> (name: [UInt8], result: Int32) {
    let superJournal = unsafe SuperJournal(endOf: base, at: path, on: registered.base)
    guard case .refused(let reason) = superJournal.state else {
      return (superJournal.name, SQLITE_OK)
    }
    record(
      SealedDatabaseError(.damagedJournal, path: registered.path, detail: reason), SQLITE_IOERR_DATA
    )
    return ([], SQLITE_IOERR_DATA)
  }

  /// Answers SQLite's test for a hot journal: it reads the first byte, which on disk is always
  /// zero.
  private func readHotByte(_ target: UnsafeMutableRawPointer) -> Int32 {
    unsafe memset(sealed.pointer, 0, JournalLayout.sealedByteCount)
    let result = unsafe base.read(sealed.pointer, JournalLayout.sealedByteCount, at: 0)
    guard result == SQLITE_OK || result == SQLITE_IOERR_SHORT_READ else { return result }
    var byteCount: Int64 = 0
    let measured = unsafe base.byteCount(&byteCount)
    guard measured == SQLITE_OK else { return measured }
    let state = unsafe JournalState(
      sealed.pointer, byteCount: byteCount, cipher: main.keys.journal)
    switch state {
    case .foreign: return fail(.unrelatedCompanionFile, SQLITE_IOERR_READ)
    case .damaged: return fail(.damagedJournal, SQLITE_IOERR_DATA)
    case .finished:
      unsafe target.storeBytes(of: 0, as: UInt8.self)
      return SQLITE_OK
    case .hot:
      unsafe target.storeBytes(of: JournalLayout.sqliteMagic[0], as: UInt8.self)
      return checkSuperJournal().result
    }
  }

  /// Reads a header's magic, or the one at the end of a super-journal pointer.
  private func readMagic(_ target: UnsafeMutableRawPointer, at offset: Int64) -> Int32 {
    let result = unsafe base.read(sealed.pointer, JournalLayout.magicByteCount, at: offset)
    guard result == SQLITE_OK else {
      unsafe memset(target, 0, JournalLayout.magicByteCount)
      return result
    }
    let isPlaceOfHeader = offset % Int64(JournalLayout.headerByteCount) == 0
    let isHeader =
      unsafe isPlaceOfHeader && sealed.bytes(0..<4).elementsEqual(JournalLayout.magic)
    guard isHeader else {
      if isEndOfPointer(at: offset) { return unsafe endPointer(target) }
      unsafe memset(target, 0, JournalLayout.magicByteCount)
      return isPlaceOfHeader ? refuseDamagedHeader(at: offset) : SQLITE_OK
    }
    guard unsafe sealed.bytes(4..<5)[0] == JournalLayout.version else {
      return fail(.newerVersion, SQLITE_IOERR_READ)
    }
    let revealed = reveal(at: offset)
    guard revealed == SQLITE_OK else { return revealed }
    unsafe target.copyMemory(
      from: JournalLayout.sqliteMagic, byteCount: JournalLayout.magicByteCount)
    return SQLITE_OK
  }

  /// Whether the 8 bytes just read are the magic at the end of a super-journal pointer.
  private func isEndOfPointer(at offset: Int64) -> Bool {
    var end: Int64 = 0
    return unsafe base.byteCount(&end) == SQLITE_OK
      && end - offset == Int64(JournalLayout.magicByteCount)
      && sealed.bytes(0..<JournalLayout.magicByteCount).elementsEqual(JournalLayout.sqliteMagic)
  }

  /// Answers the read of a super-journal pointer's magic, after which SQLite reads the name.
  private func endPointer(_ target: UnsafeMutableRawPointer) -> Int32 {
    let (name, result) = checkSuperJournal()
    guard result == SQLITE_OK else { return result }
    superJournalName = name
    unsafe target.copyMemory(
      from: JournalLayout.sqliteMagic, byteCount: JournalLayout.magicByteCount)
    return SQLITE_OK
  }

  /// Refuses a later header that has lost its magic; one that never had it ends the journal.
  private func refuseDamagedHeader(at offset: Int64) -> Int32 {
    let byteCount = JournalLayout.sealedByteCount
    guard unsafe base.read(sealed.pointer, byteCount, at: offset) == SQLITE_OK,
      unsafe JournalState(sealed.pointer, byteCount: .max, cipher: main.keys.journal) == .damaged
    else { return SQLITE_OK }
    return fail(.damagedJournal, SQLITE_IOERR_DATA)
  }

  /// Opens the header at an offset and keeps it.
  private func reveal(at offset: Int64) -> Int32 {
    let result = unsafe base.read(sealed.pointer, JournalLayout.sealedByteCount, at: offset)
    guard result == SQLITE_OK else { return result }
    guard
      let header = unsafe JournalHeader(
        opening: sealed.pointer, at: offset, cipher: main.keys.journal)
    else { return fail(.damagedJournal, SQLITE_IOERR_DATA) }
    var byteCount: Int64 = 0
    let measured = unsafe base.byteCount(&byteCount)
    guard measured == SQLITE_OK else { return measured }
    if header.vouchesForRecords && byteCount < header.end {
      return fail(.damagedJournal, SQLITE_IOERR_DATA)  // SQLite would end its rollback halfway
    }
    headers.removeAll { $0.offset == offset }
    headers.append(header)
    return SQLITE_OK
  }

  /// Reads four bytes: a header's word, a checksum, a page number, or part of a super-journal
  /// pointer.
  private func readWord(_ target: UnsafeMutableRawPointer, at offset: Int64) -> Int32 {
    if let checksum, checksum.offset == offset {
      unsafe target.storeBigEndian(checksum.value, at: 0)
      return SQLITE_OK
    }
    let fields = Int64(JournalLayout.hiddenOffset)..<Int64(JournalLayout.fieldsByteCount)
    if fields.contains(offset), !headers.contains(where: { $0.offset == 0 }) {
      let result = reveal(at: 0)
      guard result == SQLITE_OK else { return result }
    }
    if let header = headers.first(where: { fields.contains(offset - $0.offset) }) {
      let index = Int(offset - header.offset - fields.lowerBound) / 4
      unsafe target.storeBigEndian(header.words[index], at: 0)
      if header.offset == 0 { main.rollbackPageCount = header.originalPageCount }
      return SQLITE_OK
    }
    return unsafe base.read(target, 4, at: offset)
  }

  private func readPage(_ target: UnsafeMutableRawPointer, at offset: Int64) -> Int32 {
    checksum = nil
    let result = unsafe base.read(sealed.pointer, 4 + PageLayout.byteCount, at: offset - 4)
    guard let header = header(before: offset) else {
      return fail(.damagedJournal, SQLITE_IOERR_DATA)
    }
    if result == SQLITE_IOERR_SHORT_READ && header.vouchesForRecords {
      return fail(.damagedJournal, SQLITE_IOERR_DATA)  // the file is cut: SQLite would stop halfway
    }
    guard result == SQLITE_OK else { return result }
    let number = unsafe UnsafeRawPointer(sealed.pointer).bigEndianWord(at: 0)
    let end = offset + Int64(PageLayout.byteCount)
    if number == 0 || number == JournalLayout.superJournalMark {
      // No counted record has such a number.
      if header.vouchesForRecords { return fail(.damagedJournal, SQLITE_IOERR_DATA) }
      unsafe memset(target, 0, PageLayout.byteCount)  // SQLite stops here
      return SQLITE_OK
    }
    if !header.vouchesForRecords, !hasMark(of: header, at: end) {
      // An earlier journal left this record at the same offset; the present one ended before it.
      unsafe memset(target, 0, PageLayout.byteCount)
      checksum = (end, header.checksumSeed &+ 1)
      return SQLITE_OK
    }
    if unsafe main.keys.journal.open(sealed.pointer + 4, number: number, into: target) {
      checksum = unsafe (end, JournalLayout.checksum(of: target, seed: header.checksumSeed))
      return SQLITE_OK
    }
    if hasWritten || header.vouchesForRecords {
      return fail(.damagedJournal, page: number, SQLITE_IOERR_DATA)
    }
    // A torn tail, written before the database was changed: SQLite skips zeros with a wrong
    // checksum.
    checksum = (end, header.checksumSeed &+ 1)
    return SQLITE_OK
  }

  /// Whether the record whose page ends here was written into this header's segment.
  private func hasMark(of header: JournalHeader, at end: Int64) -> Bool {
    var mark: UInt32 = 0
    return unsafe base.read(&mark, 4, at: end) == SQLITE_OK
      && UInt32(bigEndian: mark) == header.checksumSeed
  }
}
