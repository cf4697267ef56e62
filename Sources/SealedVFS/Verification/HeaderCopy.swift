internal import VaultCrypto

/// A clear copy of the database header in the log or the journal.
///
/// It identifies a database whose first 16 bytes are damaged. The sealed record beside the copy
/// authenticates it.
struct HeaderCopy {
  /// The sealed record that authenticates a copy.
  private enum Record {
    /// Page 1 in a frame of the log, or in a record of the journal.
    case page(Role)
    /// The journal's first header.
    case journalHeader
  }

  let header: SealedHeader
  private let file: LockedInputFile
  /// The offset of the sealed record in its file.
  private let offset: Int64
  private let record: Record

  /// The most bytes of a journal, and frames of a log, to search.
  private static let searchedByteCount: Int64 = 16 << 20
  private static let searchedFrameCount: Int64 = 1 << 16
  /// The most copies of a file to try: anyone who can write the file can repeat a genuine header.
  private static let triedCount = 16
  /// The most pages of the database to try under a copy.
  private static let probedPageCount: UInt32 = 32

  /// Nil if the bytes are not a header of this version.
  private init?(
    _ bytes: ArraySlice<UInt8>, _ file: LockedInputFile, at offset: Int64, _ record: Record
  ) {
    guard case .sealed(let header) = FileInspection(firstBytes: Array(bytes)) else { return nil }
    self.header = header
    self.file = file
    self.offset = offset
    self.record = record
  }

  /// Returns the first accepted copy in a log.
  static func first(
    inLog file: LockedInputFile, where isWanted: (Self) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> Self? {
    let headerByteCount = LogLayout.frameHeaderByteCount
    let frameCount = LogLayout.frameCount(inFileOf: try file.byteCount())
    var triedCount = 0
    for index in 0..<min(Int64(frameCount), searchedFrameCount) where triedCount < Self.triedCount {
      let start = LogLayout.offset(ofFrame: index + 1)
      let bytes = try file.bytes(headerByteCount + SealedHeader.byteCount, at: start)
      guard bytes.bigEndianWord(at: 0) == 1,
        let copy = Self(
          bytes[headerByteCount...], file, at: start + Int64(headerByteCount), .page(.page))
      else { continue }
      triedCount += 1
      if try isWanted(copy) { return copy }
    }
    return nil
  }

  /// Returns the first accepted copy in a journal.
  ///
  /// Headers and records start at multiples of 8. Only a sealed header states the number of records, and its key
  /// depends on the unknown file id. The search therefore tries every multiple of 8. A later transaction can have
  /// overwritten part of an older copy.
  static func first(
    inJournal file: LockedInputFile, where isWanted: (Self) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> Self? {
    let end = min(try file.byteCount(), searchedByteCount)
    var start = Int64(JournalLayout.headerByteCount)
    guard end >= start else { return nil }
    let first = try file.bytes(
      SealedHeader.byteCount, at: Int64(JournalLayout.databaseHeaderOffset))
    if let copy = Self(first[...], file, at: 0, .journalHeader), try isWanted(copy) { return copy }
    let blockByteCount: Int64 = 65_536
    let overlap = 4 + SealedHeader.byteCount
    var triedCount = 0
    while start + Int64(overlap) <= end {
      let block = try file.bytes(Int(min(blockByteCount + Int64(overlap), end - start)), at: start)
      for position in stride(from: 0, through: block.count - overlap, by: 8)
      where block.bigEndianWord(at: position) == 1 && block[position + 4] == SealedHeader.magic[0] {
        guard triedCount < Self.triedCount else { return nil }
        guard
          let copy = Self(
            block[position + 4..<position + overlap], file, at: start + Int64(position) + 4,
            .page(.journal))
        else { continue }
        triedCount += 1
        if try isWanted(copy) { return copy }
      }
      start += blockByteCount
    }
    return nil
  }

  /// What the sealed record of a copy states; nil if the record does not open under the key.
  private func contents(
    under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> (isPageOne: Bool, isOfEmptyDatabase: Bool)? {
    guard try header.matches(key: key, at: file.path) else { return nil }
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let byteCount =
      if case .journalHeader = record { JournalLayout.sealedByteCount } else { sealed.byteCount }
    guard try offset + Int64(byteCount) <= file.byteCount() else { return nil }
    guard unsafe file.read(sealed.pointer, byteCount, at: offset) else {
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    do throws(CryptoError) {
      switch record {
      case .page(let role):
        let cipher = try PageCipher(role, key: key, header: header)
        let isOpen = try unsafe cipher.open(sealed.pointer, number: 1, into: page.pointer)
        return isOpen ? (true, false) : nil
      case .journalHeader:
        let cipher = try PageCipher(.journal, key: key, header: header)
        let journal = try unsafe JournalHeader(opening: sealed.pointer, at: 0, cipher: cipher)
        return journal.map { (false, $0.originalPageCount == 0) }
      }
    } catch {
      throw SealedDatabaseError(error, path: file.path)
    }
  }

  /// Whether the sealed record opens under a key, which authenticates header and key.
  func isAuthenticated(by key: borrowing SecretBytes) throws(SealedDatabaseError) -> Bool {
    try contents(under: key) != nil
  }

  /// Whether the copy is authentic and belongs to this database file.
  ///
  /// Another database can have been put beside the log or journal of an earlier one. It must not be overwritten. The
  /// file belongs to the copy if one of its pages opens, if the copy replaces all of it, or if the journal states that
  /// it was empty.
  func identifies(
    _ database: BaseFile, under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> Bool {
    guard let contents = try contents(under: key) else { return false }
    if contents.isOfEmptyDatabase { return true }
    let cipher = try translatingCryptoErrors(
      at: file.path, PageCipher(.page, key: key, header: header))
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    do throws(ResultCode) {
      if contents.isPageOne, try database.byteCount() <= Int64(PageLayout.byteCount) {
        return true
      }
      for number in 1...Self.probedPageCount {
        try unsafe database.read(
          sealed.pointer, sealed.byteCount, at: PageLayout.offset(ofPage: number))
        let isOpen = try unsafe ResultCode.translatingCryptoErrors(
          cipher.open(sealed.pointer, number: number, into: page.pointer))
        if isOpen { return true }
      }
    } catch {
      if error.isShortRead { return false }
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    return false
  }
}

extension DatabaseFiles {
  /// The first accepted copies: at most one from the log, then one from the journal.
  func headerCopies(
    where isWanted: (HeaderCopy) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> [HeaderCopy] {
    var copies: [HeaderCopy] = []
    if let log = try log(), let copy = try HeaderCopy.first(inLog: log, where: isWanted) {
      copies.append(copy)
    }
    if let journal = try journal(),
      let copy = try HeaderCopy.first(inJournal: journal, where: isWanted)
    {
      copies.append(copy)
    }
    return copies
  }

  /// The header of a database that the log or the journal can restore, although its first 16 bytes are not a header.
  ///
  /// - Returns: nil if there is no copy that identifies the file.
  func restorableHeader(
    of database: BaseFile, under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> SealedHeader? {
    try headerCopies { (copy) throws(SealedDatabaseError) in
      try copy.identifies(database, under: key)
    }.first?.header
  }
}
