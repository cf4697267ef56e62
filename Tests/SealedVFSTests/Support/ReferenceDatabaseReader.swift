import FaultVFS
import Foundation
import SystemPackage
import TestSupport
import Testing

/// The Python program that reads sealed databases, written only from the format's specification.
enum ReferenceDatabaseReader {
  static let skipReason: Comment = """
    no python3 has cryptography: `pip install cryptography`, or name one that has it in \
    DATAVAULT_JOSERFC_PYTHON
    """

  /// The first interpreter with the library.
  static let interpreter = Program.python(
    with: "cryptography", variable: "DATAVAULT_JOSERFC_PYTHON", environment: "joserfc")

  static var isAvailable: Bool { interpreter != nil }

  /// The number of rows in `t` that the reference reader finds, counted by a plain SQLite.
  static func rowCount(of place: TemporaryDatabase) throws -> String {
    let plain = TemporaryDatabase()
    let script = Repository.path("Tests/ReferenceReaders/sealed_database_reader.py")
    let key = TemporaryDatabase.keyBytes.map { byte in String(format: "%02x", byte) }.joined()
    let reader = try Program.run(
      interpreter ?? "python3",
      [script, "open", place.database.string, key, plain.database.string])
    guard reader.status == 0 else {
      return reader.errors.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let connection = try plain.open()
    guard try connection.first("SELECT count(*) FROM sqlite_master") != "0" else { return "0" }
    #expect(try connection.integrity == "ok")
    return try connection.rowCount ?? "none"
  }
}
