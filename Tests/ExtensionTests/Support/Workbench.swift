import Foundation
import VaultCrypto

/// A directory with key files, in which the tests run stock programs.
final class Workbench {
  /// The status and the output of a finished program.
  struct Outcome {
    var status: Int32
    var output: String
    var errors: String
  }

  /// The extension of this build, which SwiftPM puts beside the tests.
  static let library = Bundle.main.bundleURL.appendingPathComponent("libsealedsqlite.so").path

  static let canary = "canary-of-the-extension"

  let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("datavault-extension-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    try write(Self.keyBytes(1), to: "key")
    try write(Self.keyBytes(2), to: "other-key")
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  static func keyBytes(_ seed: UInt8) -> [UInt8] { (0..<32).map { $0 &* 7 &+ seed } }

  /// The key in the file "key".
  static var key: SecretBytes { SecretBytes(copying: keyBytes(1)) }

  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  func write(_ bytes: [UInt8], to name: String, permissions: Int = 0o600) throws {
    try Data(bytes).write(to: folder.appendingPathComponent(name))
    try FileManager.default.setAttributes(
      [.posixPermissions: permissions], ofItemAtPath: path(name))
  }

  func bytes(_ name: String) throws -> Data {
    try Data(contentsOf: folder.appendingPathComponent(name))
  }

  /// Runs the distribution's shell in this directory, with the extension loaded.
  func shell(_ commands: String...) throws -> Outcome {
    try run("/usr/bin/sqlite3", ["-bail", ":memory:", ".load \(Self.library)"] + commands)
  }

  /// Runs the distribution's Python in this directory, after three lines that load the extension.
  func python(_ script: String, _ arguments: String...) throws -> Outcome {
    let loading = """
      import os, sqlite3, sys
      loader = sqlite3.connect(":memory:"); loader.enable_load_extension(True)
      loader.load_extension(\"\(Self.library)\")

      """
    return try run("/usr/bin/python3", ["-c", loading + script] + arguments)
  }

  func run(_ program: String, _ arguments: [String]) throws -> Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.standardInput = FileHandle.nullDevice
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    // Both outputs are short, so neither pipe fills while the other is read.
    let text = String(
      decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    let words = String(
      decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return Outcome(status: process.terminationStatus, output: text, errors: words)
  }

  /// The files of this directory that contain the canary.
  func filesWithCanary() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
      try bytes($0).range(of: Data(Self.canary.utf8)) != nil
    }.sorted()
  }
}
