import Foundation
import Glibc

/// The `datavault` that was built with these tests, on a home of its own.
struct CommandLineTool: Sendable {
  /// The result of a finished process.
  struct Outcome {
    var status: Int32
    var output: [UInt8]
    var error: String
  }

  let folder: URL

  private init(folder: URL) {
    self.folder = folder
  }

  var home: URL { folder.appendingPathComponent("home") }
  var database: URL { home.appendingPathComponent("messaging.db") }
  private var passwordFile: URL { folder.appendingPathComponent("password") }
  private var keyFile: URL { folder.appendingPathComponent("key") }
  /// Whether a key file opens the vault instead of the password, which saves the derivation.
  private var usesKeyFile = false

  static let password = "correct horse battery staple"

  /// The executable beside the test bundle, or the one that `DATAVAULT_EXECUTABLE` names.
  static let executable: URL = {
    if let path = ProcessInfo.processInfo.environment["DATAVAULT_EXECUTABLE"] {
      return URL(fileURLWithPath: path)
    }
    return Bundle.main.bundleURL.appendingPathComponent("datavault")
  }()

  /// Makes a temporary folder with a home that is secured by a password.
  ///
  /// - Parameter withKeyFile: whether the queue commands open it by a key file.
  static func secured(withKeyFile: Bool = false) throws -> CommandLineTool {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("datavault-kill-\(UUID().uuidString)")
    var tool = CommandLineTool(folder: folder)
    try FileManager.default.createDirectory(
      at: tool.home, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    _ = FileManager.default.createFile(
      atPath: tool.passwordFile.path, contents: Data(password.utf8),
      attributes: [.posixPermissions: 0o600])
    let outcome = try tool.run(
      ["secure", "--home", tool.home.path, "--new-password-file", tool.passwordFile.path])
    guard outcome.status == 0 else { throw CrashTestError("secure: \(outcome.error)") }
    if withKeyFile { try tool.addKeyFile() }
    return tool
  }

  private mutating func addKeyFile() throws {
    let key = Data((0..<32).map { _ in UInt8.random(in: 0...255) })
    _ = FileManager.default.createFile(
      atPath: keyFile.path, contents: key, attributes: [.posixPermissions: 0o600])
    let outcome = try run(
      ["slots", "add", "messaging", "tests", "--new-slot-key-file", keyFile.path] + opening)
    guard outcome.status == 0 else { throw CrashTestError("slots add: \(outcome.error)") }
    usesKeyFile = true
  }

  /// The arguments that name the home and open its vault.
  private var opening: [String] {
    ["--home", home.path]
      + (usesKeyFile
        ? ["--unlock-key-file", keyFile.path] : ["--password-file", passwordFile.path])
  }

  /// The arguments of a queue command that opens the vault.
  func queueArguments(_ command: String, channel: String) -> [String] {
    ["queue", command, channel] + opening
  }

  /// The arguments of a queue command that settles deliveries.
  func settlingArguments(_ command: String, tokens: [String]) -> [String] {
    ["queue", command] + tokens + opening
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

/// An error of the test itself, not a broken promise.
struct CrashTestError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
