import SystemPackage
import Foundation
import ReferencePython
import SystemPackage
import Testing

/// The Python program that reads sealed databases, written only from the format's specification.
enum ReferenceDatabaseReader {
  static let skipReason: Comment = """
    no python3 has cryptography: `pip install cryptography`, or name one that has it in \
    DATAVAULT_JOSERFC_PYTHON
    """

  private static let python = ReferencePython(
    library: "cryptography", variable: "DATAVAULT_JOSERFC_PYTHON", environment: "joserfc")

  static var isAvailable: Bool { python.isAvailable }

  /// The number of rows in `t` that the reference reader finds, counted by a plain SQLite.
  static func rowCount(of place: TemporaryDatabase) throws -> String {
    let plain = try TemporaryDatabase()
    let key = TemporaryDatabase.keyBytes.map { byte in String(format: "%02x", byte) }.joined()
    do {
      _ = try python.run(
        "Tests/ReferenceReaders/sealed_database_reader.py",
        ["open", place.database.string, key, plain.database.string])
    } catch let refusal as ReferencePython.Failure {
      return refusal.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let connection = try plain.open()
    guard try connection.first("SELECT count(*) FROM sqlite_master") != "0" else { return "0" }
    #expect(try connection.integrity == "ok")
    return try connection.rowCount ?? "none"
  }
}
