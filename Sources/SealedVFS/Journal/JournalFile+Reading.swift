internal import Glibc
internal import VaultCrypto

extension JournalFile {
  /// Answers one of the reads of pager.c.
  func answer(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    let name = superJournalName
    superJournalName = nil
    if let name, offset + Int64(byteCount) == name.end {
      // The name that was checked; the file can have changed since then.
      unsafe memset(target, 0, byteCount)  // SQLite rolls back when it finds no name
      if name.bytes.count == byteCount {
        unsafe target.copyMemory(from: name.bytes, byteCount: byteCount)
      }
      return
    }
    switch byteCount {
    case 1 where offset == 0: try unsafe readHotByte(target)
    case JournalLayout.magicByteCount: try unsafe readMagic(target, at: offset)
    case PageLayout.byteCount: try unsafe readPage(target, at: offset)
    case 4: try unsafe readWord(target, at: offset)
    default: throw ResultCode(SQLITE_IOERR_READ)
    }
  }

  /// Checks the super-journal pointer before SQLite rolls back, ignores the journal or deletes a
  /// file.
  ///
  /// - Returns: the super-journal's name; empty if there is none.
  private func checkSuperJournal() throws(ResultCode) -> [UInt8] {
    let superJournal: SuperJournal
    do throws(ResultCode) {
      superJournal = try unsafe SuperJournal(endOf: base, at: path, on: registered.base)
    } catch {
      throw fail(.inputOutput, error.value)
    }
    guard case .refused(let reason) = superJournal.state else { return superJournal.name }
    throw record(
      SealedDatabaseError(.damagedJournal, path: registered.path, detail: reason), SQLITE_IOERR_DATA
    )
  }

  /// Answers SQLite's test for a hot journal: it reads the first byte, which on disk is always
  /// zero.
  private func readHotByte(_ target: UnsafeMutableRawPointer) throws(ResultCode) {
    try main.learnIdentity()  // the file contents can have changed since the journal was opened
    unsafe memset(sealed.pointer, 0, JournalLayout.sealedByteCount)
    do throws(ResultCode) {
      try unsafe base.read(sealed.pointer, JournalLayout.sealedByteCount, at: 0)
    } catch  where error.isShortRead {
      // The bytes after the end count as zeros.
    }
    let state = try journalState(byteCount: base.byteCount())
    switch state {
    case .foreign: throw fail(.unrelatedCompanionFile, SQLITE_IOERR_READ)
    case .damaged: throw fail(.damagedJournal, SQLITE_IOERR_DATA)
    case .finished: unsafe target.storeBytes(of: 0, as: UInt8.self)
    case .hot:
      unsafe target.storeBytes(of: JournalLayout.sqliteMagic[0], as: UInt8.self)
      _ = try checkSuperJournal()
    }
  }

  /// Reads a header's magic, or the one at the end of a super-journal pointer.
  private func readMagic(
    _ target: UnsafeMutableRawPointer, at offset: Int64
  ) throws(ResultCode) {
    unsafe memset(target, 0, JournalLayout.magicByteCount)
    try unsafe base.read(sealed.pointer, JournalLayout.magicByteCount, at: offset)
    let isPlaceOfHeader = offset % Int64(JournalLayout.headerByteCount) == 0
    if unsafe isPlaceOfHeader && sealed.bytes(0..<4).elementsEqual(JournalLayout.magic) {
      guard unsafe sealed.bytes(4..<5)[0] == JournalLayout.version else {
        throw fail(.newerVersion, SQLITE_IOERR_READ)
      }
      try openHeader(at: offset)
    } else if try isEndOfPointer(at: offset) {
      // The length and the sum are between the name and the magic.
      superJournalName = (try checkSuperJournal(), offset - 8)
    } else {
      if isPlaceOfHeader { try refuseDamagedHeader(at: offset) }
      return
    }
    unsafe target.copyMemory(
      from: JournalLayout.sqliteMagic, byteCount: JournalLayout.magicByteCount)
  }

  /// Whether the 8 bytes just read are the magic at the end of a super-journal pointer.
  private func isEndOfPointer(at offset: Int64) throws(ResultCode) -> Bool {
    let rest = try base.byteCount() - offset
    return unsafe rest == Int64(JournalLayout.magicByteCount)
      && sealed.bytes(0..<JournalLayout.magicByteCount).elementsEqual(JournalLayout.sqliteMagic)
  }

  /// Refuses a later header that has lost its magic; one that never had it ends the journal.
  private func refuseDamagedHeader(at offset: Int64) throws(ResultCode) {
    do throws(ResultCode) {
      try unsafe base.read(sealed.pointer, JournalLayout.sealedByteCount, at: offset)
    } catch  where error.isShortRead {
      return
    }
    if try journalState(byteCount: .max) == .damaged {
      throw fail(.damagedJournal, SQLITE_IOERR_DATA)
    }
  }

  /// The state of a journal with these bytes in `sealed`, the first or a later header.
  private func journalState(byteCount: Int64) throws(ResultCode) -> JournalState {
    try unsafe ResultCode.translatingCryptoErrors(
      JournalState(sealed.pointer, byteCount: byteCount, cipher: main.keys.journal))
  }

  /// Opens the header at an offset and keeps it.
  private func openHeader(at offset: Int64) throws(ResultCode) {
    try unsafe base.read(sealed.pointer, JournalLayout.sealedByteCount, at: offset)
    let opened = try unsafe ResultCode.translatingCryptoErrors(
      JournalHeader(opening: sealed.pointer, at: offset, cipher: main.keys.journal))
    guard let header = opened else { throw fail(.damagedJournal, SQLITE_IOERR_DATA) }
    if try base.byteCount() < header.end && header.vouchesForRecords {
      throw fail(.damagedJournal, SQLITE_IOERR_DATA)  // SQLite would end its rollback halfway
    }
    headers.removeAll { $0.offset == offset }
    headers.append(header)
  }

  /// Reads four bytes: a header's word, a checksum, a page number, or part of a super-journal
  /// pointer.
  private func readWord(
    _ target: UnsafeMutableRawPointer, at offset: Int64
  ) throws(ResultCode) {
    if let checksum, checksum.offset == offset {
      return unsafe target.storeBigEndian(checksum.value, at: 0)
    }
    let fields = Int64(JournalLayout.encryptedOffset)..<Int64(JournalLayout.fieldsByteCount)
    if fields.contains(offset), !headers.contains(where: { $0.offset == 0 }) {
      try openHeader(at: 0)
    }
    if let header = headers.first(where: { fields.contains(offset - $0.offset) }) {
      let index = Int(offset - header.offset - fields.lowerBound) / 4
      unsafe target.storeBigEndian(header.words[index], at: 0)
      if header.offset == 0 { main.rollbackPageCount = header.originalPageCount }
      return
    }
    try unsafe base.read(target, 4, at: offset)
  }

  private func readPage(
    _ target: UnsafeMutableRawPointer, at offset: Int64
  ) throws(ResultCode) {
    checksum = nil
    guard let header = header(before: offset) else {
      throw fail(.damagedJournal, SQLITE_IOERR_DATA)
    }
    let end = offset + Int64(PageLayout.byteCount)
    // Required records: a count states them, or this handle wrote them.
    let isRequired = header.vouchesForRecords || end < recordsEnd
    do throws(ResultCode) {
      try unsafe base.read(sealed.pointer, 4 + PageLayout.byteCount, at: offset - 4)
    } catch  where error.isShortRead && isRequired {
      throw fail(.damagedJournal, SQLITE_IOERR_DATA)  // the file is cut: SQLite would stop halfway
    }
    let number = unsafe sealed.pointer.bigEndianWord(at: 0)
    if number == 0 || number == JournalLayout.superJournalMark {
      if isRequired { throw fail(.damagedJournal, SQLITE_IOERR_DATA) }
      unsafe memset(target, 0, PageLayout.byteCount)  // SQLite stops here
      return
    }
    let hasMark = header.vouchesForRecords ? true : try hasMark(of: header, at: end)
    if !hasMark && !isRequired {
      // An earlier journal left this record at the same offset; the present one ended before it.
      unsafe memset(target, 0, PageLayout.byteCount)
      checksum = (end, header.checksumSeed &+ 1)
      return
    }
    let isWhole = try unsafe ResultCode.translatingCryptoErrors(
      hasMark
        ? main.keys.journal.open(sealed.pointer + 4, number: number, into: target)
        : false)
    if isWhole {
      checksum = unsafe (end, JournalLayout.checksum(of: target, seed: header.checksumSeed))
    } else if hasWritten || isRequired {
      throw fail(.damagedJournal, page: number, SQLITE_IOERR_DATA)
    } else {
      // A torn tail, written before the database was changed: SQLite skips zeros with a wrong
      // checksum.
      checksum = (end, header.checksumSeed &+ 1)
    }
  }

  /// Whether the record whose page ends here was written into this header's segment.
  private func hasMark(of header: JournalHeader, at end: Int64) throws(ResultCode) -> Bool {
    var mark: UInt32 = 0
    do throws(ResultCode) {
      try unsafe base.read(&mark, 4, at: end)
    } catch  where error.isShortRead {
      return false  // the record is cut before its mark
    }
    return UInt32(bigEndian: mark) == header.checksumSeed
  }
}
