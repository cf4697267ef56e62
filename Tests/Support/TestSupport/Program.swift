import Foundation

/// A program that ran to its end.
package struct Program: Sendable {
  package let status: Int32
  package let output: [UInt8]
  package let errors: String

  /// The output as text.
  package var text: String { String(decoding: output, as: UTF8.self) }

  package init(status: Int32, output: [UInt8], errors: String) {
    self.status = status
    self.output = output
    self.errors = errors
  }

  /// Runs a program to its end, with standard input, output and error in files.
  package static func run(
    _ executable: String, _ arguments: [String] = [], input: [UInt8]? = nil,
    in folder: String? = nil, environment: [String: String]? = nil
  ) throws -> Program {
    let files = ScratchFolder()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    if let folder { process.currentDirectoryURL = URL(fileURLWithPath: folder) }
    if let environment { process.environment = environment }
    process.standardInput = try input.map { try files.reading("input", $0) } ?? .nullDevice
    process.standardOutput = try files.writing("output")
    process.standardError = try files.writing("errors")
    try process.run()
    process.waitUntilExit()
    TestLog.note(
      "\(executable) \(arguments.joined(separator: " ")): exit code \(process.terminationStatus)")
    return Program(
      status: process.terminationStatus, output: try files.bytes("output"),
      errors: files.contents(of: "errors") ?? "")
  }

  /// The environment for commands: their passwords take few iterations, as Tests/Support/FastDerivation says.
  package static let commandEnvironment: [String: String] = {
    var variables = ProcessInfo.processInfo.environment
    variables["LD_PRELOAD"] = variables["DATAVAULT_TEST_PRELOAD"]
    return variables
  }()

  /// Copies a file by another process: when it closes the file, SQLite's locks stay.
  package static func copy(_ source: String, to target: String) throws {
    _ = try run("/bin/cp", [source, target])
  }

  /// The path of a program of this build, beside the test bundle.
  package static func built(_ name: String) -> String {
    Bundle.main.bundleURL.appendingPathComponent(name).path
  }

  /// The built `datavault`, or the one that `DATAVAULT_EXECUTABLE` names.
  package static let datavault =
    ProcessInfo.processInfo.environment["DATAVAULT_EXECUTABLE"] ?? built("datavault")

  /// The built `datavaultd`.
  package static let datavaultd = built("datavaultd")

  /// The distribution's own sqlite3 shell, without the sealed VFS; nil if it is not installed.
  package static let sqlite3: String? = ["/usr/bin/sqlite3", "/usr/local/bin/sqlite3"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  /// The first Python that has a module.
  ///
  /// - Parameters:
  ///   - variable: names the Python that is tried first.
  ///   - environment: a virtual environment in `.build`, which is tried next.
  package static func python(
    with module: String, variable: String, environment: String
  ) -> String? {
    let variables = ProcessInfo.processInfo.environment
    var candidates = [variables[variable], Repository.path(".build/\(environment)/bin/python3")]
    candidates += (variables["PATH"] ?? "").split(separator: ":").map { "\($0)/python3" }
    return (candidates + ["/usr/bin/python3"]).compactMap(\.self).first {
      FileManager.default.isExecutableFile(atPath: $0)
        && (try? run($0, ["-c", "import \(module)"]).status) == 0
    }
  }
}

/// The number in an environment variable, by which a long run changes a test.
package func setting<Number: FixedWidthInteger>(_ variable: String) -> Number? {
  ProcessInfo.processInfo.environment[variable].flatMap { Number($0) }
}

/// The files of this repository.
package enum Repository {
  package static func path(_ relative: String) -> String {
    url.appendingPathComponent(relative).path
  }

  package static func text(_ relative: String) throws -> String {
    try String(contentsOfFile: path(relative), encoding: .utf8)
  }

  private static let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
}
