/// Where things lie in a rollback journal: <https://sqlite.org/fileformat2.html#the_rollback_journal>
/// and `docs/sealed-database-format.md`, "The rollback journal".
enum JournalLayout {
  /// The device characteristics that we answer keep SQLite's sector size at its least.
  static let headerByteCount = 512
  static let magicByteCount = 8
  /// Page number, page, checksum.
  static let recordByteCount = 4 + PageLayout.byteCount + 4
  /// SQLite's own magic, shown in place of ours; on disk only at the end of a super-journal pointer.
  static let sqliteMagic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  /// The first byte is zero, so that a stock SQLite leaves the journal alone.
  static let magic: [UInt8] = [0x00, 0x44, 0x56, 0x4A]
  static let version: UInt8 = 1

  /// What SQLite writes of a header at once, and what of it is sealed.
  static let fieldsByteCount = 28
  static let hiddenOffset = 8
  static let hiddenByteCount = 20
  static let sealingOffset = 28
  static let sealedByteCount = 68

  /// Magic and record count, which SQLite writes again when the records are complete.
  static let countedByteCount = 12

  /// The page number that stands before a super-journal's name.
  static let superJournalMark = PageLayout.lockPageNumber

  /// SQLite's checksum of a page: `pager_cksum` of pager.c.
  static func checksum(of page: UnsafeRawPointer, seed: UInt32) -> UInt32 {
    var sum = seed
    var index = PageLayout.byteCount - 200
    while index > 0 {
      unsafe sum &+= UInt32(page.load(fromByteOffset: index, as: UInt8.self))
      index -= 200
    }
    return sum
  }
}
