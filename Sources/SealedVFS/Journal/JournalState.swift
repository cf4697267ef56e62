/// What the first 68 bytes of a rollback journal say about it.
enum JournalState {
  /// Its records count: the database must be rolled back.
  case hot
  /// It is done with, or its header never reached the disk: a power cut may leave any bytes in a
  /// place that was not synchronized, and the database was not touched before that.
  case finished
  /// It was hot, and its first 8 bytes were changed since.
  case damaged
  /// It is one of SQLite's own.
  case foreign

  /// Judges, with a header that is opened in a copy of the bytes.
  init(_ bytes: UnsafeRawPointer, cipher: PageCipher) {
    let start = unsafe UnsafeRawBufferPointer(start: bytes, count: JournalLayout.sealedByteCount)
    if unsafe start.starts(with: JournalLayout.magic) {
      self = .hot
    } else if unsafe start.starts(with: JournalLayout.sqliteMagic) {
      self = .foreign
    } else if unsafe start.allSatisfy({ $0 == 0 }) {
      self = .finished
    } else {
      self = unsafe Self.wasHot(bytes, cipher) ? .damaged : .finished
    }
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
