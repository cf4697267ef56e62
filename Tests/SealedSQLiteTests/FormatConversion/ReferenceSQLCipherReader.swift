import Foundation
import SystemPackage
import Testing

/// SQLCipher itself, through a Python program: `Tests/ReferenceReaders/sqlcipher_reader.py`.
enum ReferenceSQLCipherReader {
  static let skipReason: Comment = """
    no python3 has sqlcipher3: `pip install sqlcipher3-wheels==0.5.7`, or name one that has it in \
    DATAVAULT_SQLCIPHER_PYTHON
    """

  static let repository = FilePath(#filePath)
    .removingLastComponent().removingLastComponent().removingLastComponent()
    .removingLastComponent()

  /// The first interpreter with the library.
  static let interpreter: String? = {
    let environment = ProcessInfo.processInfo.environment
    var candidates = [
      environment["DATAVAULT_SQLCIPHER_PYTHON"],
      repository.appending(".build/sqlcipher/bin/python3").string,
    ].compactMap { $0 }
    candidates += (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/python3" }
    return candidates.first { candidate in
      FileManager.default.isExecutableFile(atPath: candidate)
        && (try? run(candidate, ["-c", "import sqlcipher3"])) != nil
    }
  }()

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
    let script = repository.appending("Tests/ReferenceReaders/sqlcipher_reader.py").string
    return try run(interpreter ?? "python3", [script] + arguments)
  }

  private static func run(_ program: String, _ arguments: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    let errorText = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(output: String(decoding: errorText, as: UTF8.self))
    }
    return String(decoding: text, as: UTF8.self)
  }
}
