import SystemPackage
import TestSupport
import Testing

/// SQLCipher itself, through a Python program: `Tests/ReferenceReaders/sqlcipher_reader.py`.
enum ReferenceSQLCipherReader {
  static let skipReason: Comment = """
    no python3 has sqlcipher3: `pip install sqlcipher3-wheels==0.5.7`, or name one that has it in \
    DATAVAULT_SQLCIPHER_PYTHON
    """

  /// The first interpreter with the library.
  static let interpreter = Program.python(
    with: "sqlcipher3", variable: "DATAVAULT_SQLCIPHER_PYTHON", environment: "sqlcipher")

  static var isAvailable: Bool { interpreter != nil }

  /// Writes a database with SQLCipher; the Python program describes the options.
  static func write(_ path: FilePath, key: String, _ options: [String] = []) throws {
    _ = try runScript(["write", path.string, key] + options)
  }

  /// The contents that SQLCipher reads: one line of JSON, equal for equal contents.
  static func read(_ path: FilePath, key: String) throws -> String {
    try runScript(["read", path.string, key])
  }

  struct Failure: Error {
    let output: String
  }

  private static func runScript(_ arguments: [String]) throws -> String {
    let script = Repository.path("Tests/ReferenceReaders/sqlcipher_reader.py")
    let reader = try Program.run(interpreter ?? "python3", [script] + arguments)
    guard reader.status == 0 else { throw Failure(output: reader.errors) }
    return reader.text
  }
}
