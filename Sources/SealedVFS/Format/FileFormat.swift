/// The encryption format of a database file's pages.
///
/// Both formats have pages of 4096 bytes, and replace the first 16 bytes, which are constant in a
/// plain database.
public struct FileFormat: Sendable, Hashable {
  /// The format's name in errors.
  public let name: String

  /// The number of bytes at the end of each page that SQLite reserves for the format.
  public let reservedByteCount: Int

  /// The sealed format of this library: `docs/reference/sealed-database-format.md`.
  public static let sealed = FileFormat(
    name: "sealed", reservedByteCount: PageLayout.reservedByteCount)

  /// SQLCipher 4 with its default settings: `docs/reference/sqlcipher-format.md`.
  ///
  /// Such a database is read in place, and written only as a whole new file. Its log and journal
  /// are never opened.
  public static let sqlcipher4 = FileFormat(name: "sqlcipher4", reservedByteCount: 80)
}
