import Foundation
import TestSupport

/// The `datavault` that was built with these tests, on a home of its own.
struct CommandLineTool: Sendable {
  let folder: URL

  private init(folder: URL) { self.folder = folder }

  var home: URL { folder.appendingPathComponent("home") }
  var database: URL { home.appendingPathComponent("messaging.db") }
  private var passwordFile: URL { folder.appendingPathComponent("password") }
  private var keyFile: URL { folder.appendingPathComponent("key") }
  /// Whether a key file opens the vault instead of the password, which saves the derivation.
  private var usesKeyFile = false

  static let password = "correct horse battery staple"

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
    guard outcome.status == 0 else { throw CrashTestError("secure: \(outcome.errors)") }
    if withKeyFile { try tool.addKeyFile() }
    return tool
  }

  private mutating func addKeyFile() throws {
    let key = Data((0..<32).map { _ in UInt8.random(in: 0...255) })
    _ = FileManager.default.createFile(
      atPath: keyFile.path, contents: key, attributes: [.posixPermissions: 0o600])
    let outcome = try run(
      ["slots", "add", "messaging", "tests", "--new-slot-key-file", keyFile.path] + opening)
    guard outcome.status == 0 else { throw CrashTestError("slots add: \(outcome.errors)") }
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
  func run(_ arguments: [String], executable: String = Program.datavault) throws -> Program {
    try Program.run(executable, arguments)
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  static func fresh(_ file: URL) throws -> FileHandle {
    _ = FileManager.default.createFile(atPath: file.path, contents: nil)
    return try FileHandle(forWritingTo: file)
  }
}

/// An error of the test itself, not a broken promise.
struct CrashTestError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
