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
  private static let searchedFrameCount: Int64 = 4096

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
    for index in 0..<min(Int64(frameCount), searchedFrameCount) {
      let start = LogLayout.offset(ofFrame: index + 1)
      let bytes = try file.bytes(headerByteCount + SealedHeader.byteCount, at: start)
      if bytes.bigEndianWord(at: 0) == 1,
        let copy = Self(
          bytes[headerByteCount...], file, at: start + Int64(headerByteCount), .page(.page)),
        try isWanted(copy)
      {
        return copy
      }
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
    while start + Int64(overlap) <= end {
      let block = try file.bytes(Int(min(blockByteCount + Int64(overlap), end - start)), at: start)
      for position in stride(from: 0, through: block.count - overlap, by: 8)
      where block.bigEndianWord(at: position) == 1 && block[position + 4] == SealedHeader.magic[0] {
        if let copy = Self(
          block[position + 4..<position + overlap], file, at: start + Int64(position) + 4,
          .page(.journal)),
          try isWanted(copy)
        {
          return copy
        }
      }
      start += blockByteCount
    }
    return nil
  }

  /// Whether the sealed record opens under a key, which authenticates header and key.
  func isAuthenticated(by key: borrowing SecretBytes) throws(SealedDatabaseError) -> Bool {
    guard try header.matches(key: key, at: file.path) else { return false }
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let byteCount =
      if case .journalHeader = record { JournalLayout.sealedByteCount } else { sealed.byteCount }
    guard try offset + Int64(byteCount) <= file.byteCount() else { return false }
    guard unsafe file.read(sealed.pointer, byteCount, at: offset) else {
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    do throws(CryptoError) {
      switch record {
      case .page(let role):
        let cipher = try PageCipher(role, key: key, header: header)
        return try unsafe cipher.open(sealed.pointer, number: 1, into: page.pointer)
      case .journalHeader:
        let cipher = try PageCipher(.journal, key: key, header: header)
        return try unsafe JournalHeader(opening: sealed.pointer, at: 0, cipher: cipher) != nil
      }
    } catch {
      throw SealedDatabaseError(error, path: file.path)
    }
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

  /// The header of a copy that the key authenticates; nil if there is none.
  func authenticatedHeader(
    under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> SealedHeader? {
    try headerCopies { (copy) throws(SealedDatabaseError) in
      try copy.isAuthenticated(by: key)
    }.first?.header
  }
}
