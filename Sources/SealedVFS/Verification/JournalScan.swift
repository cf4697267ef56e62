internal import Glibc
internal import VaultCrypto

/// The contents of a rollback journal, read as SQLite's rollback would read them.
struct JournalScan {
  private(set) var report = VerificationReport.Journal(state: .absent)

  /// The database's size before the transaction; nil unless the journal is hot.
  private(set) var pageCount: UInt32?

  /// The offset of each page's record in a hot journal, after its page number.
  private(set) var records: [UInt32: Int64] = [:]

  private static let recordByteCount = Int64(JournalLayout.recordByteCount)

  init() {}

  init(
    _ file: LockedInputFile, keys: FileKeys, isReservedElsewhere: Bool
  ) throws(SealedDatabaseError) {
    let byteCount = try file.byteCount()
    let header = Scratch(byteCount: JournalLayout.headerByteCount)
    // Bytes after the end of the file count as zeros.
    unsafe memset(header.pointer, 0, header.byteCount)
    let sealedByteCount = Int(min(byteCount, Int64(JournalLayout.sealedByteCount)))
    guard sealedByteCount > 0 else {
      report.state = .finished
      return
    }
    guard unsafe file.read(header.pointer, sealedByteCount, at: 0) else {
      report.state = .damaged
      return
    }
    if isReservedElsewhere {
      report.state = .inUse
      return
    }
    let state = try unsafe translatingCryptoErrors(
      at: file.path, JournalState(header.pointer, byteCount: byteCount, cipher: keys.journal))
    switch state {
    case .foreign: report.state = .foreign
    case .damaged: report.state = .damaged
    case .finished:
      report.state = .finished
      report.unusedRecordCount = try Self.recordCount(in: file, byteCount, keys)
    case .hot:
      do throws(SealedDatabaseError) {
        evaluate(try file.superJournal().state)
      } catch {
        if error.isOutOfMemory { throw error }
        evaluate(.refused("a super-journal cannot be read"))
      }
      if report.lacksSuperJournal {
        report.unusedRecordCount = try Self.recordCount(in: file, byteCount, keys)
        return
      }
      let first = try unsafe translatingCryptoErrors(
        at: file.path, JournalHeader(opening: header.pointer, at: 0, cipher: keys.journal))
      if let first {
        pageCount = first.originalPageCount
        try read(file, byteCount, first, header, keys)
      } else {
        report.state = .damaged
      }
    }
  }

  /// Classifies a hot journal as the next opening will.
  private mutating func evaluate(_ state: SuperJournal.State) {
    switch state {
    case .notNamed, .listing: report.state = .hot
    case .missing:
      report.state = .finished
      report.lacksSuperJournal = true
    case .refused(let reason):
      report.state = .damaged
      report.superJournalFault = reason
    }
  }

  /// The number of records that open, independent of the headers.
  ///
  /// If a record does not open, its offset holds a header, or the record is damaged.
  private static func recordCount(
    in file: LockedInputFile, _ byteCount: Int64, _ keys: FileKeys
  ) throws(SealedDatabaseError) -> Int {
    let record = Scratch(byteCount: JournalLayout.recordByteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    func opens(at offset: Int64) throws(SealedDatabaseError) -> Bool {
      guard unsafe file.read(record.pointer, record.byteCount, at: offset) else { return false }
      let number = unsafe record.pointer.bigEndianWord(at: 0)
      return try unsafe translatingCryptoErrors(
        at: file.path, keys.journal.open(record.pointer + 4, number: number, into: page.pointer))
    }
    let step = Int64(JournalLayout.headerByteCount)
    var count = 0
    var offset = step
    while offset + recordByteCount <= byteCount {
      if try opens(at: offset) {
        count += 1
      } else {
        let next = placeOfHeader(after: offset) + step
        if try opens(at: next) {
          count += 1
          offset = next
        }
      }
      offset += recordByteCount
    }
    return count
  }

  /// The first offset for a header at or after an offset.
  private static func placeOfHeader(after offset: Int64) -> Int64 {
    let step = Int64(JournalLayout.headerByteCount)
    return (offset + step - 1) / step * step
  }

  /// Reads all segments, each a header with its records.
  private mutating func read(
    _ file: LockedInputFile, _ byteCount: Int64, _ first: JournalHeader,
    _ scratch: borrowing Scratch,
    _ keys: FileKeys
  ) throws(SealedDatabaseError) {
    let record = Scratch(byteCount: JournalLayout.recordByteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    var header: JournalHeader? = first
    while let current = header {
      var offset = current.offset + Int64(JournalLayout.headerByteCount)
      let room = max(0, (byteCount - offset) / Self.recordByteCount)
      let counted = Int64(current.words[0])
      let isCounted = current.words[0] != JournalHeader.countByFileSize
      if isCounted && counted > room && current.vouchesForRecords { noteDamage() }
      for _ in 0..<(isCounted ? min(counted, room) : room) {
        guard unsafe file.read(record.pointer, record.byteCount, at: offset) else {
          return noteDamage()
        }
        let number = unsafe record.pointer.bigEndianWord(at: 0)
        if number == 0 || number == JournalLayout.superJournalMark {
          if current.vouchesForRecords { noteDamage() }
          return
        }
        report.recordCount += 1
        let mark = unsafe record.pointer.bigEndianWord(at: 4 + PageLayout.byteCount)
        if !current.vouchesForRecords && mark != current.checksumSeed {
          report.recordCount -= 1  // the record of an earlier journal
          return
        }
        let isOpen = try unsafe translatingCryptoErrors(
          at: file.path, keys.journal.open(record.pointer + 4, number: number, into: page.pointer))
        if isOpen {
          if records[number] == nil { records[number] = offset + 4 }
          if unsafe keys.journal.isHeaderChanged(in: record.pointer + 4, number: number),
            report.changedHeaderRecords.count < VerificationReport.listLimit
          {
            report.changedHeaderRecords.append(report.recordCount)
          }
        } else if current.vouchesForRecords {
          noteDamage()
        } else {
          report.recordCount -= 1  // the torn end of a journal that no rollback needs
          return
        }
        offset += Self.recordByteCount
      }
      if !isCounted || counted > room { return }
      header = try nextHeader(file, byteCount, after: offset, scratch, keys)
    }
  }

  private mutating func nextHeader(
    _ file: LockedInputFile, _ byteCount: Int64, after end: Int64, _ scratch: borrowing Scratch,
    _ keys: FileKeys
  ) throws(SealedDatabaseError) -> JournalHeader? {
    let offset = Self.placeOfHeader(after: end)
    guard offset + Int64(JournalLayout.headerByteCount) <= byteCount else { return nil }
    guard unsafe file.read(scratch.pointer, JournalLayout.sealedByteCount, at: offset) else {
      noteDamage()
      return nil
    }
    let bytes = unsafe scratch.pointer
    if unsafe !scratch.bytes(0..<4).elementsEqual(JournalLayout.magic) {
      let state = try unsafe translatingCryptoErrors(
        at: file.path, JournalState(bytes, byteCount: .max, cipher: keys.journal))
      if state == .damaged { noteDamage() }
      return nil
    }
    let header = try unsafe translatingCryptoErrors(
      at: file.path, JournalHeader(opening: bytes, at: offset, cipher: keys.journal))
    if header == nil { noteDamage() }
    return header
  }

  private mutating func noteDamage() {
    report.damagedRecordCount += 1
    if report.damagedRecords.count < VerificationReport.listLimit {
      report.damagedRecords.append(report.recordCount)
    }
  }
}
