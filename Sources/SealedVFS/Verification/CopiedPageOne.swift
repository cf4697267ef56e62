internal import VaultCrypto

/// A copy of page 1 in the log or the journal.
///
/// It begins with the database's header in the clear, and so identifies a database whose own first 16 bytes are damaged.
struct CopiedPageOne {
  let header: SealedHeader
  fileprivate let file: LockedInputFile
  /// The offset of the sealed page in its file.
  fileprivate let offset: Int64
  fileprivate let role: Role

  /// The most bytes of a journal, and frames of a log, to search.
  private static let searchedByteCount: Int64 = 16 << 20
  private static let searchedFrameCount: Int64 = 4096

  /// The first copy in a log that is wanted.
  static func first(
    inLog file: LockedInputFile, where isWanted: (Self) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> Self? {
    let byteCount = LogLayout.frameHeaderByteCount + SealedHeader.byteCount
    let frameCount = LogLayout.frameCount(inFileOf: try file.byteCount())
    for index in 0..<min(Int64(frameCount), searchedFrameCount) {
      let start = LogLayout.offset(ofFrame: index + 1)
      let bytes = try file.bytes(byteCount, at: start)
      guard bytes.bigEndianWord(at: 0) == 1,
        case .sealed(let header) = FileInspection(
          firstBytes: Array(bytes[LogLayout.frameHeaderByteCount...]))
      else { continue }
      let copy = Self(
        header: header, file: file, offset: start + Int64(LogLayout.frameHeaderByteCount),
        role: .page)
      if try isWanted(copy) { return copy }
    }
    return nil
  }

  /// The first copy in a journal that is wanted.
  ///
  /// Headers and records begin at multiples of 8, and only a header tells how many records follow it. It is sealed under
  /// keys that need the file id. Therefore every multiple of 8 is tried. A copy that an earlier transaction left can be
  /// overwritten in part.
  static func first(
    inJournal file: LockedInputFile, where isWanted: (Self) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> Self? {
    let blockByteCount: Int64 = 65_536
    let overlap = Int64(4 + SealedHeader.byteCount)
    let end = min(try file.byteCount(), searchedByteCount)
    var start = Int64(JournalLayout.headerByteCount)
    while start + overlap <= end {
      let block = try file.bytes(Int(min(blockByteCount + overlap, end - start)), at: start)
      for place in stride(from: 0, through: block.count - Int(overlap), by: 8)
      where block.bigEndianWord(at: place) == 1 && block[place + 4] == SealedHeader.magic[0] {
        let header = Array(block[place + 4..<place + Int(overlap)])
        if case .sealed(let header) = FileInspection(firstBytes: header) {
          let copy = Self(
            header: header, file: file, offset: start + Int64(place) + 4, role: .journal)
          if try isWanted(copy) { return copy }
        }
      }
      start += blockByteCount
    }
    return nil
  }

  /// Whether the page opens under a key, which proves that header and key are right.
  func opens(under key: borrowing SecretBytes) throws(SealedDatabaseError) -> Bool {
    guard try header.matches(key: key, at: file.path),
      try offset + Int64(PageLayout.byteCount) <= file.byteCount()
    else { return false }
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    guard unsafe file.read(sealed.pointer, sealed.byteCount, at: offset) else {
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    do throws(CryptoError) {
      let cipher = try PageCipher(role, key: key, header: header)
      return try unsafe cipher.open(sealed.pointer, number: 1, into: page.pointer)
    } catch {
      throw SealedDatabaseError(error, path: file.path)
    }
  }
}

extension DatabaseFiles {
  /// The first wanted copy of page 1 in the log, and the one in the journal.
  func copiesOfPageOne(
    where isWanted: (CopiedPageOne) throws(SealedDatabaseError) -> Bool
  ) throws(SealedDatabaseError) -> [CopiedPageOne] {
    var copies: [CopiedPageOne?] = []
    if let log = try log() { copies.append(try .first(inLog: log, where: isWanted)) }
    if let journal = try journal() {
      copies.append(try .first(inJournal: journal, where: isWanted))
    }
    return copies.compactMap(\.self)
  }

  /// The header of a copy of page 1 that opens under a key; nil if there is none.
  func headerOfCopiedPageOne(
    under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> SealedHeader? {
    // A closure cannot capture a borrowed key.
    let key = key.copy()
    return try copiesOfPageOne { (copy) throws(SealedDatabaseError) in
      try copy.opens(under: key)
    }.first?.header
  }
}
