/// The parts of a sealed page: `docs/reference/sealed-database-format.md`, "A sealed page".
package enum PageLayout {
  package static let byteCount = 4096
  /// The bytes at the start of a file that are constant in a plain database.
  static let identityByteCount = 16
  /// These bytes in an unencrypted database.
  static let plainIdentity = Array("SQLite format 3\0".utf8)
  /// The nonce and the tag, at the end of the page: 40 bytes.
  static let reservedByteCount = MessageCipher.sealingByteCount
  /// The part that SQLite uses: 4056 bytes.
  package static let contentByteCount = byteCount - reservedByteCount

  /// The page that holds SQLite's lock bytes, at 1 GiB; SQLite never writes it.
  package static let lockPageNumber: UInt32 = 262_145

  /// The offset of a page in the database file; pages count from 1.
  static func offset(ofPage number: UInt32) -> Int64 {
    (Int64(number) - 1) * Int64(byteCount)
  }

  /// The page that begins at an offset; nil if none does.
  static func pageNumber(at offset: Int64) -> UInt32? {
    guard offset >= 0, offset % Int64(byteCount) == 0 else { return nil }
    return UInt32(exactly: offset / Int64(byteCount) + 1)
  }
}
