internal import VaultCrypto

/// A clear copy of the database header in the log or the journal.
///
/// It identifies a database whose first 16 bytes are damaged. The sealed record beside the copy
/// authenticates it.
struct HeaderCopy {
  /// The sealed record that authenticates a copy.
  private enum Record {
    /// Page 1 in a frame of the log, or in a record of the journal.
    case page
    /// The journal's first header.
    case journalHeader
  }

  let header: SealedHeader
  private let companion: Companion
  /// The offset of the sealed record in its file.
  private let offset: Int64
  private let record: Record

  /// The most copies of a file to try: anyone who can write the file can repeat a genuine header.
  private static let triedCount = 16
  /// The most pages of the database to try under a copy.
  private static let probedPageCount: UInt32 = 32

  /// Returns the first accepted copy in a log or journal.
  static func first(
    in companion: Companion, where isWanted: (Self) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> Self? {
    var found: Self?
    var triedCount = 0
    func accept(_ offset: Int64, _ headerOffset: Int64, _ record: Record)
      throws(SealedDatabaseError) -> Bool
    {
      let bytes = try companion.file.bytes(SealedHeader.byteCount, at: headerOffset)
      guard case .sealed(let header) = FileInspection(firstBytes: bytes) else { return false }
      let copy = Self(header: header, companion: companion, offset: offset, record: record)
      triedCount += 1
      if try isWanted(copy) { found = copy }
      return found != nil || triedCount == Self.triedCount
    }
    if companion.role == .journal,
      try companion.file.byteCount() >= Int64(JournalLayout.headerByteCount),
      try accept(0, Int64(JournalLayout.databaseHeaderOffset), .journalHeader)
    {
      return found
    }
    try companion.forEachPage(in: 1...1) { (_, offset) throws(SealedDatabaseError) in
      try accept(offset, offset, .page)
    }
    return found
  }

  /// The number of pages of the database that the sealed record states; nil if the record does not open under the key.
  ///
  /// A copy of page 1 that states no number counts as one of a database of one page.
  private func pageCount(
    under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> UInt32? {
    let file = companion.file
    guard try header.matches(key: key, at: file.path) else { return nil }
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let byteCount = record == .page ? PageLayout.byteCount : JournalLayout.sealedByteCount
    guard try offset + Int64(byteCount) <= file.byteCount() else { return nil }
    try unsafe file.readAll(byteCount, into: sealed.pointer, at: offset)
    do throws(CryptoError) {
      let cipher = try PageCipher(companion.role, key: key, header: header)
      switch record {
      case .page:
        let isOpen = try unsafe cipher.open(sealed.pointer, number: 1, into: page.pointer)
        return unsafe isOpen ? UnsafeRawPointer(page.pointer).statedPageCount ?? 1 : nil
      case .journalHeader:
        return try unsafe JournalHeader(opening: sealed.pointer, at: 0, cipher: cipher)?
          .originalPageCount
      }
    } catch {
      throw SealedDatabaseError(error, path: file.path)
    }
  }

  /// Whether the sealed record opens under a key, which authenticates header and key.
  func isAuthenticated(by key: borrowing SecretBytes) throws(SealedDatabaseError) -> Bool {
    try pageCount(under: key) != nil
  }

  /// Whether the copy is authentic and belongs to this database file.
  ///
  /// Another file can have taken the place of the database. It must not be overwritten. The file belongs to the copy if
  /// one of its pages opens, or if the log or the journal holds every page of the database.
  func identifies(
    _ database: BaseFile, at path: String, under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> Bool {
    guard let pageCount = try pageCount(under: key) else { return false }
    if try opensPage(of: database, at: path, under: key) { return true }
    if pageCount == 0 { return true }
    guard pageCount <= Self.probedPageCount else { return false }
    let cipher = try translatingCryptoErrors(
      at: companion.file.path, PageCipher(companion.role, key: key, header: header))
    return try companion.holds(pageCount: pageCount, under: cipher)
  }

  /// Whether one of the first pages of a database file opens.
  private func opensPage(
    of database: BaseFile, at path: String, under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> Bool {
    let cipher = try translatingCryptoErrors(
      at: path, PageCipher(.page, key: key, header: header))
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    var failure: SealedDatabaseError?
    for number in 1...Self.probedPageCount {
      do throws(ResultCode) {
        try unsafe database.read(
          sealed.pointer, sealed.byteCount, at: PageLayout.offset(ofPage: number))
      } catch {
        if error.isShortRead { break }
        failure = failure ?? SealedDatabaseError(error, path: path)
        if error.isOutOfMemory { break }
        continue
      }
      let isOpen = try unsafe translatingCryptoErrors(
        at: path, cipher.open(sealed.pointer, number: number, into: page.pointer))
      if isOpen { return true }
    }
    if let failure { throw failure }
    return false
  }
}

/// A log or journal, searched for pages without its sealed headers.
struct Companion {
  let file: LockedInputFile
  /// The role of its pages: those of a log have the role of the database.
  let role: Role

  /// The most bytes of a journal, and frames of a log, to search.
  private static let searchedByteCount: Int64 = 16 << 20
  private static let searchedFrameCount: Int64 = 1 << 16
  /// The most pages to open: anyone who can write the file can repeat a page number.
  private static let openedCount = 256

  /// Whether each page of a database opens in this file.
  func holds(
    pageCount: UInt32, under cipher: PageCipher
  ) throws(SealedDatabaseError) -> Bool {
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    var missing = Set(1...pageCount)
    var openedCount = 0
    try forEachPage(in: 1...pageCount) { (number, offset) throws(SealedDatabaseError) in
      guard missing.contains(number) else { return false }
      try unsafe file.readAll(PageLayout.byteCount, into: sealed.pointer, at: offset)
      openedCount += 1
      let isOpen = try unsafe translatingCryptoErrors(
        at: file.path, cipher.open(sealed.pointer, number: number, into: page.pointer))
      if isOpen { missing.remove(number) }
      return missing.isEmpty || openedCount == Self.openedCount
    }
    return missing.isEmpty
  }

  /// Calls `body` with the number and the offset of each sealed page, until it returns true.
  ///
  /// Continues after a part that cannot be read, and throws its error only if `body` never returns true.
  func forEachPage(
    in numbers: ClosedRange<UInt32>,
    _ body: (UInt32, Int64) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) {
    var failure: SealedDatabaseError?
    func isLast(
      _ step: () throws(SealedDatabaseError) -> Bool
    ) throws(SealedDatabaseError) -> Bool {
      do throws(SealedDatabaseError) {
        return try step()
      } catch {
        if error.isOutOfMemory { throw error }
        failure = failure ?? error
        return false
      }
    }
    let byteCount = try file.byteCount()
    if role == .page {
      let frameCount = LogLayout.frameCount(inFileOf: byteCount)
      for index in 0..<min(Int64(frameCount), Self.searchedFrameCount) {
        let start = LogLayout.offset(ofFrame: index + 1)
        let isDone = try isLast { () throws(SealedDatabaseError) -> Bool in
          let number = try file.bytes(4, at: start).bigEndianWord(at: 0)
          guard numbers.contains(number) else { return false }
          return try body(number, start + Int64(LogLayout.frameHeaderByteCount))
        }
        if isDone { return }
      }
      if let failure { throw failure }
      return
    }
    // Headers and records start at multiples of 8. Only a sealed header states the number of records, and its key
    // depends on the file id, which can be unknown. The search therefore tries every multiple of 8.
    let blockByteCount: Int64 = 65_536
    let end = min(byteCount - Int64(JournalLayout.recordByteCount) + 4, Self.searchedByteCount)
    var start = Int64(JournalLayout.headerByteCount)
    while start < end {
      let isDone = try isLast { () throws(SealedDatabaseError) -> Bool in
        let block = try file.bytes(Int(min(blockByteCount, end - start)), at: start)
        for position in stride(from: 0, through: block.count - 4, by: 8) {
          let number = block.bigEndianWord(at: position)
          if numbers.contains(number), try body(number, start + Int64(position) + 4) {
            return true
          }
        }
        return false
      }
      if isDone { return }
      start += blockByteCount
    }
    if let failure { throw failure }
  }
}

extension DatabaseFiles {
  /// The first accepted copies: at most one from the log, then one from the journal.
  func headerCopies(
    where isWanted: (HeaderCopy) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> [HeaderCopy] {
    var companions: [Companion] = []
    if let log = try log() { companions.append(Companion(file: log, role: .page)) }
    if let journal = try journal() {
      companions.append(Companion(file: journal, role: .journal))
    }
    var copies: [HeaderCopy] = []
    for companion in companions {
      if let copy = try HeaderCopy.first(in: companion, where: isWanted) { copies.append(copy) }
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
      try copy.identifies(database, at: path, under: key)
    }.first?.header
  }
}
