import Foundation
public import SystemPackage

/// A Python interpreter that has one library, for the programs in `Tests/ReferenceReaders`.
public struct ReferencePython: Sendable {
  /// The root of the repository.
  public static let repository = FilePath(#filePath)
    .removingLastComponent().removingLastComponent().removingLastComponent()
    .removingLastComponent()

  private let interpreter: String?

  /// Finds the first interpreter that has a library.
  ///
  /// - Parameters:
  ///   - variable: the environment variable that names an interpreter.
  ///   - environment: the name of a virtual environment in `.build`.
  public init(library: String, variable: String, environment: String) {
    let variables = ProcessInfo.processInfo.environment
    var candidates = [
      variables[variable], Self.repository.appending(".build/\(environment)/bin/python3").string,
    ].compactMap { $0 }
    candidates += (variables["PATH"] ?? "").split(separator: ":").map { "\($0)/python3" }
    candidates.append("/usr/bin/python3")
    interpreter = candidates.first { candidate in
      FileManager.default.isExecutableFile(atPath: candidate)
        && (try? Self.run(candidate, ["-c", "import \(library)"], input: [])) != nil
    }
  }

  /// Whether there is one.
  public var isAvailable: Bool { interpreter != nil }

  /// Runs a program of the repository.
  ///
  /// - Returns: its standard output.
  /// - Throws: `Failure` if it does not end with 0.
  public func run(_ script: String, _ arguments: [String], input: [UInt8] = []) throws -> [UInt8] {
    try Self.run(
      interpreter ?? "python3", [Self.repository.appending(script).string] + arguments,
      input: input)
  }

  /// A program that did not end with 0.
  public struct Failure: Error {
    /// The exit code.
    public let status: Int32
    /// The standard error.
    public let output: String
  }

  private static func run(
    _ program: String, _ arguments: [String], input: [UInt8]
  ) throws -> [UInt8] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let (standardInput, standardOutput, standardError) = (Pipe(), Pipe(), Pipe())
    process.standardInput = standardInput
    process.standardOutput = standardOutput
    process.standardError = standardError
    try process.run()
    standardInput.fileHandleForWriting.write(Data(input))
    try standardInput.fileHandleForWriting.close()
    let output = standardOutput.fileHandleForReading.readDataToEndOfFile()
    let complaints = standardError.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(
        status: process.terminationStatus, output: String(decoding: complaints, as: UTF8.self))
    }
    return Array(output)
  }
}
