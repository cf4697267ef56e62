internal import VaultCrypto

/// The state of a rollback journal, read from its first 68 bytes.
enum JournalState {
  /// The journal is in force: the database must be rolled back.
  case hot
  /// The transaction has ended, or the header never reached the disk.
  ///
  /// A power cut can leave any bytes in a place that was not synchronized. The database was not
  /// changed before that.
  case finished
  /// The journal was hot, and was changed or cut afterwards.
  case damaged
  /// The journal is an unsealed one of SQLite's.
  case foreign

  /// Finds the state; a header is opened in a copy of the bytes.
  ///
  /// - Parameters:
  ///   - bytes: 68 bytes; zeros after the end of the journal.
  ///   - byteCount: the length of the journal.
  init(_ bytes: UnsafeRawPointer, byteCount: Int64, cipher: PageCipher) throws(CryptoError) {
    let start = unsafe UnsafeRawBufferPointer(start: bytes, count: JournalLayout.sealedByteCount)
    let known = JournalLayout.magic.prefix(Int(min(max(byteCount, 2), 4)))  // less of a cut one
    if unsafe start.starts(with: known) {
      self = try unsafe Self.isCut(bytes, byteCount, cipher) ? .damaged : .hot
    } else if unsafe start.starts(with: JournalLayout.sqliteMagic) {
      self = .foreign
    } else if unsafe start.prefix(JournalLayout.magicByteCount).allSatisfy({ $0 == 0 }) {
      self = .finished  // SQLite zeroes only these bytes of an earlier journal's header
    } else {
      self = try unsafe Self.wasHot(bytes, cipher) ? .damaged : .finished
    }
  }

  /// Whether the end is missing, with records that were synchronized before the journal became hot.
  ///
  /// At the end of the file SQLite ends a rollback without an error, with half of it undone.
  private static func isCut(
    _ bytes: UnsafeRawPointer, _ byteCount: Int64, _ cipher: PageCipher
  ) throws(CryptoError) -> Bool {
    if byteCount < Int64(JournalLayout.headerByteCount) { return true }
    guard let header = try unsafe header(bytes, cipher), header.vouchesForRecords else {
      return false  // a damaged header is reported when it is read
    }
    return byteCount < header.end
  }

  /// Whether the header's sealed part opens once the first 8 bytes of a hot journal are restored.
  private static func wasHot(
    _ bytes: UnsafeRawPointer, _ cipher: PageCipher
  ) throws(CryptoError) -> Bool {
    for count in [JournalHeader.Count.synchronized, .unsynchronized]
    where try unsafe header(bytes, restoring: count, cipher) != nil {
      return true
    }
    return false
  }

  private static func header(
    _ bytes: UnsafeRawPointer, restoring count: JournalHeader.Count? = nil, _ cipher: PageCipher
  ) throws(CryptoError) -> JournalHeader? {
    let scratch = Scratch(byteCount: JournalLayout.sealedByteCount)
    unsafe scratch.pointer.copyMemory(from: bytes, byteCount: scratch.byteCount)
    if let count { unsafe JournalHeader.writeClearPart(count, to: scratch.pointer) }
    return try unsafe JournalHeader(opening: scratch.pointer, at: 0, cipher: cipher)
  }
}
