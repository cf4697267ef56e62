import ReferencePython
import SystemPackage
import Testing

/// SQLCipher itself, through a Python program: `Tests/ReferenceReaders/sqlcipher_reader.py`.
enum ReferenceSQLCipherReader {
  static let skipReason: Comment = """
    no python3 has sqlcipher3: `pip install sqlcipher3-wheels==0.5.7`, or name one that has it in \
    DATAVAULT_SQLCIPHER_PYTHON
    """

  private static let python = ReferencePython(
    library: "sqlcipher3", variable: "DATAVAULT_SQLCIPHER_PYTHON", environment: "sqlcipher")

  static var isAvailable: Bool { python.isAvailable }

  /// Writes a database with SQLCipher; the Python program describes the options.
  static func write(_ path: FilePath, key: String, _ options: [String] = []) throws {
    _ = try runScript(["write", path.string, key] + options)
  }

  /// The contents that SQLCipher reads: one line of JSON, equal for equal contents.
  static func read(_ path: FilePath, key: String) throws -> String {
    try runScript(["read", path.string, key])
  }

  private static func runScript(_ arguments: [String]) throws -> String {
    let output = try python.run("Tests/ReferenceReaders/sqlcipher_reader.py", arguments)
    return String(decoding: output, as: UTF8.self)
  }
}
