internal import Glibc
internal import VaultCrypto

/// A decrypted header of the rollback journal.
struct JournalHeader {
  /// Whether the records of a header were synchronized before their count was written.
  enum Count: UInt8 {
    /// The header has no count and no magic yet, and does not make the journal hot.
    case none = 0
    case synchronized = 1
    case unsynchronized = 2
  }

  let offset: Int64
  var count: Count
  /// SQLite's record count, checksum seed, original page count, sector size and page size.
  var words: [UInt32]

  /// The count by which SQLite says that the records reach to the end of the file.
  static let countByFileSize: UInt32 = 0xFFFF_FFFF

  var checksumSeed: UInt32 { words[1] }

  /// The database's size before the transaction.
  var originalPageCount: UInt32 { words[2] }

  /// Whether every record that this header counts was on disk before the database was changed.
  var vouchesForRecords: Bool { count == .synchronized && words[0] != Self.countByFileSize }

  /// The offset at which the counted records end.
  var end: Int64 {
    offset + Int64(JournalLayout.headerByteCount)
      + Int64(words[0]) * Int64(JournalLayout.recordByteCount)
  }

  /// The five words from SQLite's bytes 8..27.
  static func words(from bytes: UnsafeRawPointer) -> [UInt32] {
    (0..<5).map { unsafe bytes.bigEndianWord(at: 4 * $0) }
  }

  /// Writes bytes 0..7: magic, version and count state; zeros if there is no count.
  static func writeClearPart(_ count: Count, to target: UnsafeMutableRawPointer) {
    unsafe memset(target, 0, JournalLayout.encryptedOffset)
    if count != .none {
      unsafe target.copyMemory(from: JournalLayout.magic, byteCount: 4)
      unsafe target.storeBytes(of: JournalLayout.version, toByteOffset: 4, as: UInt8.self)
      unsafe target.storeBytes(of: count.rawValue, toByteOffset: 5, as: UInt8.self)
    }
  }

  /// Seals the header into the first 68 bytes of `target`.
  func seal(
    into target: UnsafeMutableRawPointer, cipher: PageCipher, nonces: inout NonceSequence
  ) throws(CryptoError) {
    unsafe memset(target, 0, JournalLayout.sealedByteCount)
    unsafe Self.writeClearPart(count, to: target)
    let encrypted = unsafe target + JournalLayout.encryptedOffset
    for (index, word) in words.enumerated() { unsafe encrypted.storeBigEndian(word, at: 4 * index) }
    try unsafe cipher.sealRecord(
      encrypted, byteCount: JournalLayout.encryptedByteCount, clear: target,
      sealing: target + JournalLayout.sealingOffset, nonces: &nonces)
  }
}

extension JournalHeader {
  /// Opens 68 bytes in place; nil if they do not authenticate.
  init?(
    opening bytes: UnsafeMutableRawPointer, at offset: Int64, cipher: PageCipher
  ) throws(CryptoError) {
    let encrypted = unsafe bytes + JournalLayout.encryptedOffset
    guard
      try unsafe cipher.openRecord(
        encrypted, byteCount: JournalLayout.encryptedByteCount, clear: bytes,
        sealing: bytes + JournalLayout.sealingOffset),
      let count = unsafe Count(rawValue: bytes.load(fromByteOffset: 5, as: UInt8.self))
    else { return nil }
    unsafe self.init(offset: offset, count: count, words: Self.words(from: encrypted))
  }
}

/// The offsets in a rollback journal: <https://sqlite.org/fileformat2.html#the_rollback_journal>
/// and `docs/reference/sealed-database-format.md`, "The rollback journal".
enum JournalLayout {
  /// SQLite's smallest sector size, which our device characteristics make it use.
  static let headerByteCount = 512
  static let magicByteCount = 8
  /// Page number, page, checksum.
  static let recordByteCount = 4 + PageLayout.byteCount + 4
  /// SQLite's own magic, shown in place of ours; on disk it only ends a super-journal pointer.
  static let sqliteMagic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  /// Our magic; its first byte is zero, so that a stock SQLite ignores the journal.
  static let magic: [UInt8] = [0x00, 0x44, 0x56, 0x4A]
  static let version: UInt8 = 1

  /// The part of a header that SQLite writes in one call, and the sealed part of it.
  static let fieldsByteCount = 28
  static let encryptedOffset = 8
  static let encryptedByteCount = 20
  static let sealingOffset = fieldsByteCount
  static let sealedByteCount = sealingOffset + MessageCipher.sealingByteCount

  /// The offset of the database header's copy in a journal header.
  static let databaseHeaderOffset = sealedByteCount

  /// The magic and record count, which SQLite writes again when the records are complete.
  static let countedByteCount = 12

  /// The page number before a super-journal's name.
  static let superJournalMark = PageLayout.lockPageNumber

  /// SQLite's checksum of a page: `pager_cksum` of pager.c.
  static func checksum(of page: UnsafeRawPointer, seed: UInt32) -> UInt32 {
    stride(from: PageLayout.byteCount - 200, to: 0, by: -200).reduce(seed) { sum, index in
      unsafe sum &+ UInt32(page.load(fromByteOffset: index, as: UInt8.self))
    }
  }
}
