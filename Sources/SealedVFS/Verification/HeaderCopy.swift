internal import VaultCrypto

/// A copy of the database's header in the log or the journal, in the clear.
///
/// It identifies a database whose own first 16 bytes are damaged. A sealed record beside it proves it.
struct HeaderCopy {
  /// The sealed record that proves a copy.
  private enum Proof {
    /// Page 1 in a frame of the log, or in a record of the journal.
    case page(Role)
    /// The journal's first header.
    case journalHeader
  }

  let header: SealedHeader
  private let file: LockedInputFile
  /// The offset of the sealed record in its file.
  private let offset: Int64
  private let proof: Proof

  /// The most bytes of a journal, and frames of a log, to search.
  private static let searchedByteCount: Int64 = 16 << 20
  private static let searchedFrameCount: Int64 = 4096

  /// Nil if the bytes are not a header of this version.
  private init?(
    _ bytes: ArraySlice<UInt8>, _ file: LockedInputFile, at offset: Int64, _ proof: Proof
  ) {
    guard case .sealed(let header) = FileInspection(firstBytes: Array(bytes)) else { return nil }
    self.header = header
    self.file = file
    self.offset = offset
    self.proof = proof
  }

  /// The first wanted copy in a log.
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

  /// The first wanted copy in a journal.
  ///
  /// Headers and records begin at multiples of 8, and only a header states how many records follow it. It is sealed
  /// under keys that need the file id. Therefore every multiple of 8 is tried. A copy that an earlier transaction left
  /// can be overwritten in part.
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
      for place in stride(from: 0, through: block.count - overlap, by: 8)
      where block.bigEndianWord(at: place) == 1 && block[place + 4] == SealedHeader.magic[0] {
        if let copy = Self(
          block[place + 4..<place + overlap], file, at: start + Int64(place) + 4, .page(.journal)),
          try isWanted(copy)
        {
          return copy
        }
      }
      start += blockByteCount
    }
    return nil
  }

  /// Whether the sealed record opens under a key, which proves header and key.
  func isProved(by key: borrowing SecretBytes) throws(SealedDatabaseError) -> Bool {
    guard try header.matches(key: key, at: file.path) else { return false }
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let byteCount =
      if case .journalHeader = proof { JournalLayout.sealedByteCount } else { sealed.byteCount }
    guard try offset + Int64(byteCount) <= file.byteCount() else { return false }
    guard unsafe file.read(sealed.pointer, byteCount, at: offset) else {
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    do throws(CryptoError) {
      switch proof {
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
  /// The first wanted copy of the header in the log, and the one in the journal.
  func headerCopies(
    where isWanted: (HeaderCopy) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> [HeaderCopy] {
    var copies: [HeaderCopy?] = []
    if let log = try log() { copies.append(try .first(inLog: log, where: isWanted)) }
    if let journal = try journal() {
      copies.append(try .first(inJournal: journal, where: isWanted))
    }
    return copies.compactMap(\.self)
  }

  /// The header of a copy that a key proves; nil if there is none.
  func provedHeader(
    under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> SealedHeader? {
    // A closure cannot capture a borrowed key.
    let key = key.copy()
    return try headerCopies { (copy) throws(SealedDatabaseError) in
      try copy.isProved(by: key)
    }.first?.header
  }
}
