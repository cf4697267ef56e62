internal import SealedVFS

/// The settings in the database header: <https://sqlite.org/fileformat2.html#the_database_header>.
struct DatabaseSettings {
  var encoding = TextEncoding.utf8
  var userVersion: Int32 = 0
  var applicationID: Int32 = 0
  /// The value for `PRAGMA auto_vacuum`.
  var autoVacuum = 0

  init() {}

  /// Reads page 1.
  init(firstPage page: [UInt8]) {
    encoding =
      TextEncoding(rawValue: UInt8(truncatingIfNeeded: page.bigEndianWord(at: 56))) ?? .utf8
    userVersion = Int32(bitPattern: page.bigEndianWord(at: 60))
    applicationID = Int32(bitPattern: page.bigEndianWord(at: 68))
    if page.bigEndianWord(at: 52) != 0 { autoVacuum = page.bigEndianWord(at: 64) != 0 ? 2 : 1 }
  }
}
