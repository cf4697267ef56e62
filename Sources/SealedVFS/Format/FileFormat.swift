/// How the pages of a database file are encrypted.
///
/// Both have pages of 4096 bytes, and 16 bytes at the start that SQLite keeps constant.
public struct FileFormat: Sendable, Hashable {
  /// What errors call it.
  public let name: String

  /// How many bytes at the end of each page SQLite leaves to the format.
  public let reservedByteCount: Int

  /// Our own: `docs/reference/sealed-database-format.md`.
  public static let sealed = FileFormat(name: "sealed", reservedByteCount: 40)

  /// SQLCipher 4 with its default settings: `docs/reference/sqlcipher-format.md`.
  ///
  /// Read where it lies, and written only as a whole new file: its log and journal are never opened.
  public static let sqlcipher4 = FileFormat(name: "sqlcipher4", reservedByteCount: 80)
}

/// Where things lie in a sealed page: `docs/reference/sealed-database-format.md`, "A sealed page".
enum PageLayout {
  static let byteCount = 4096
  /// What SQLite keeps constant at the start of a file, and every format uses for its own purpose.
  static let identityByteCount = 16
  static let reservedByteCount = 40
  static let contentByteCount = 4056
  static let nonceOffset = 4056
  static let nonceByteCount = 24
  static let tagOffset = 4080
  static let tagByteCount = 16

  /// The page that holds SQLite's lock bytes, at 1 GiB: it is never written.
  static let lockPageNumber: UInt32 = 262_145

  /// Where a page lies in the database file; pages count from 1.
  static func offset(ofPage number: UInt32) -> Int64 {
    (Int64(number) - 1) * Int64(byteCount)
  }

  /// The page that begins at an offset; nil where none does.
  static func pageNumber(at offset: Int64) -> UInt32? {
    guard offset >= 0, offset % Int64(byteCount) == 0 else { return nil }
    return UInt32(exactly: offset / Int64(byteCount) + 1)
  }
}
