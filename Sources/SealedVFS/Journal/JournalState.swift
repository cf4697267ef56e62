/// What the first 68 bytes of a rollback journal say about it.
enum JournalState {
  /// Its records count: the database must be rolled back.
  case hot
  /// It is done with, or its header never reached the disk: a power cut may leave any bytes in a
  /// place that was not synchronized, and the database was not touched before that.
  case finished
  /// It was hot, and was changed or cut since.
  case damaged
  /// It is one of SQLite's own.
  case foreign

  /// Judges, with a header that is opened in a copy of the bytes.
  ///
  /// - Parameters:
  ///   - bytes: 68 bytes; zeros after the end of the journal.
  ///   - byteCount: the length of the journal.
  init(_ bytes: UnsafeRawPointer, byteCount: Int64, cipher: PageCipher) {
    let start = unsafe UnsafeRawBufferPointer(start: bytes, count: JournalLayout.sealedByteCount)
    let known = JournalLayout.magic.prefix(Int(min(max(byteCount, 2), 4)))  // of a cut one, less
    if unsafe start.starts(with: known) {
      self = unsafe Self.isCut(bytes, byteCount, cipher) ? .damaged : .hot
    } else if unsafe start.starts(with: JournalLayout.sqliteMagic) {
      self = .foreign
    } else if unsafe start.prefix(JournalLayout.magicByteCount).allSatisfy({ $0 == 0 }) {
      self = .finished  // SQLite puts zeros there alone, over an earlier journal's header
    } else {
      self = unsafe Self.wasHot(bytes, cipher) ? .damaged : .finished
    }
  }

  /// Whether records that were synchronized before the journal became hot are missing at its end.
  ///
  /// SQLite ends a rollback at the end of the file without an error, half of it undone.
  private static func isCut(
    _ bytes: UnsafeRawPointer, _ byteCount: Int64, _ cipher: PageCipher
  ) -> Bool {
    if byteCount < Int64(JournalLayout.headerByteCount) { return true }
    let scratch = Scratch(byteCount: JournalLayout.sealedByteCount)
    unsafe scratch.pointer.copyMemory(from: bytes, byteCount: scratch.byteCount)
    guard let header = unsafe JournalHeader(opening: scratch.pointer, at: 0, cipher: cipher),
      header.vouchesForRecords
    else { return false }  // a damaged header is named when it is read
    return byteCount < header.end
  }

  /// Whether the sealed part of the header opens with the first 8 bytes of a hot journal.
  private static func wasHot(_ bytes: UnsafeRawPointer, _ cipher: PageCipher) -> Bool {
    let scratch = Scratch(byteCount: JournalLayout.sealedByteCount)
    return [JournalHeader.Count.synchronized, .unsynchronized].contains { count in
      unsafe scratch.pointer.copyMemory(from: bytes, byteCount: scratch.byteCount)
      unsafe JournalHeader.writeClearPart(count, to: scratch.pointer)
      return unsafe JournalHeader(opening: scratch.pointer, at: 0, cipher: cipher) != nil
    }
  }
}
