/// How the pages of a database file are encrypted.
///
/// Both have pages of 4096 bytes, and 16 bytes at the start that SQLite keeps constant.
public struct FileFormat: Sendable, Hashable {
  /// What errors call it.
  public let name: String

  /// How many bytes at the end of each page SQLite leaves to the format.
  public let reservedByteCount: Int

  /// Our own: `docs/sealed-database-format.md`.
  public static let sealed = FileFormat(name: "sealed", reservedByteCount: 40)

  /// SQLCipher 4 with its default settings: `docs/sqlcipher-format.md`.
  ///
  /// Read where it lies, and written only as a whole new file: its log and journal are never opened.
  public static let sqlcipher4 = FileFormat(name: "sqlcipher4", reservedByteCount: 80)
}
