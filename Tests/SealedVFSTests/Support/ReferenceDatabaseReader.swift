import Foundation
import SystemPackage
import Testing

/// The Python program that reads sealed databases, written only from the format's specification.
enum ReferenceDatabaseReader {
  static let skipReason: Comment = """
    no python3 has cryptography: `pip install cryptography`, or name one that has it in \
    DATAVAULT_JOSERFC_PYTHON
    """

  static let repository = FilePath(#filePath)
    .removingLastComponent().removingLastComponent().removingLastComponent()
    .removingLastComponent()

  /// The first interpreter with the library.
  static let interpreter: String? = {
    let environment = ProcessInfo.processInfo.environment
    var candidates = [
      environment["DATAVAULT_JOSERFC_PYTHON"],
      repository.appending(".build/joserfc/bin/python3").string,
    ].compactMap { $0 }
    candidates += (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/python3" }
    candidates.append("/usr/bin/python3")
    return candidates.first { candidate in
      FileManager.default.isExecutableFile(atPath: candidate)
        && (try? Shell.run(candidate, ["-c", "import cryptography"]).status) == 0
    }
  }()

  static var isAvailable: Bool { interpreter != nil }

  /// The number of rows in `t` that the reference reader finds, counted by a plain SQLite.
  static func rowCount(of place: TemporaryDatabase) throws -> String {
    let plain = try TemporaryDatabase()
    let script = repository.appending("Tests/ReferenceReaders/sealed_database_reader.py").string
    let key = TemporaryDatabase.keyBytes.map { byte in String(format: "%02x", byte) }.joined()
    let reader = try Shell.run(
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
