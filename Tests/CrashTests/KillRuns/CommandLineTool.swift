import Foundation
import TestSupport

/// The `datavault` that was built with these tests, on a home of its own.
struct CommandLineTool: Sendable {
  let folder: URL
  var home: URL { folder.appendingPathComponent("home") }
  var database: URL { home.appendingPathComponent("messaging.db") }

  /// The options that name the home and open its vault.
  private var opening: [String] = []

  static let password = "correct horse battery staple"

  /// Makes a temporary folder with a home that is secured by a password.
  ///
  /// - Parameter withKeyFile: whether the queue commands open it by a key file, which saves the
  ///   derivation.
  init(withKeyFile: Bool = false) throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("datavault-kill-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    opening = ["--home", home.path]
    let passwordFile = file("password", Data(Self.password.utf8))
    try prepare(["secure", "--new-password-file", passwordFile])
    opening += ["--password-file", passwordFile]
    if withKeyFile {
      let keyFile = file("key", Data((0..<32).map { _ in UInt8.random(in: 0...255) }))
      try prepare(["slots", "add", "messaging", "tests", "--new-slot-key-file", keyFile])
      opening = ["--home", home.path, "--unlock-key-file", keyFile]
    }
  }

  private func file(_ name: String, _ contents: Data) -> String {
    let path = folder.appendingPathComponent(name).path
    _ = FileManager.default.createFile(
      atPath: path, contents: contents, attributes: [.posixPermissions: 0o600])
    return path
  }

  private func prepare(_ command: [String]) throws {
    let outcome = try run(command)
    guard outcome.status == 0 else { throw CrashTestError("\(command): \(outcome.errors)") }
  }

  /// The arguments of a queue command that opens the vault.
  func queueArguments(_ command: [String]) -> [String] { ["queue"] + command + opening }

  /// Runs a command that opens the vault to its end.
  func run(_ command: [String]) throws -> Program {
    try Program.run(Program.datavault, command + opening)
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  /// Opens a new file in the folder for the output of a process.
  func writing(_ name: String) throws -> FileHandle {
    try FileHandle(forWritingTo: URL(fileURLWithPath: file(name, Data())))
  }
}

/// An error of the test itself, not a broken promise.
struct CrashTestError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
