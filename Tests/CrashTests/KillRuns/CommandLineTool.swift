import Foundation
import Glibc

/// The `datavault` that was built beside these tests, on a home of its own.
struct CommandLineTool: Sendable {
  /// What a finished process left.
  struct Outcome {
    var status: Int32
    var output: [UInt8]
    var error: String
  }

  let folder: URL
  var home: URL { folder.appendingPathComponent("home") }
  var database: URL { home.appendingPathComponent("messaging.db") }
  private var passwordFile: URL { folder.appendingPathComponent("password") }

  static let password = "correct horse battery staple"

  /// Beside the test bundle, or where `DATAVAULT_EXECUTABLE` says.
  static let executable: URL = {
    if let path = ProcessInfo.processInfo.environment["DATAVAULT_EXECUTABLE"] {
      return URL(fileURLWithPath: path)
    }
    return Bundle.main.bundleURL.appendingPathComponent("datavault")
  }()

  /// Makes a temporary folder with a home that is secured by a password.
  static func secured() throws -> CommandLineTool {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("datavault-kill-\(UUID().uuidString)")
    let tool = CommandLineTool(folder: folder)
    try FileManager.default.createDirectory(
      at: tool.home, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    _ = FileManager.default.createFile(
      atPath: tool.passwordFile.path, contents: Data(password.utf8),
      attributes: [.posixPermissions: 0o600])
    let outcome = try tool.run(
      ["secure", "--home", tool.home.path, "--new-password-file", tool.passwordFile.path])
    guard outcome.status == 0 else { throw CrashTestError("secure: \(outcome.error)") }
    return tool
  }

  /// The arguments of a queue command that opens the vault.
  func queueArguments(_ command: String, channel: String) -> [String] {
    ["queue", command, channel, "--home", home.path, "--password-file", passwordFile.path]
  }

  /// Runs `datavault`, or another executable, to its end.
  func run(_ arguments: [String], executable: URL = executable) throws -> Outcome {
    let output = folder.appendingPathComponent("output-\(UUID().uuidString)")
    let error = folder.appendingPathComponent("error-\(UUID().uuidString)")
    defer {
      try? FileManager.default.removeItem(at: output)
      try? FileManager.default.removeItem(at: error)
    }
    let process = Process()
    process.executableURL = executable
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try Self.fresh(output)
    process.standardError = try Self.fresh(error)
    try process.run()
    process.waitUntilExit()
    return Outcome(
      status: process.terminationStatus, output: Array(try Data(contentsOf: output)),
      error: String(decoding: try Data(contentsOf: error), as: UTF8.self))
  }

  func remove() {
    try? FileManager.default.removeItem(at: folder)
  }

  static func fresh(_ file: URL) throws -> FileHandle {
    _ = FileManager.default.createFile(atPath: file.path, contents: nil)
    return try FileHandle(forWritingTo: file)
  }
}

/// A run that could not be made, as against one that broke a promise.
struct CrashTestError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
