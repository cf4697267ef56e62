import Foundation
import GRDB
import SealedSQLite
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// A directory with key files, in which the tests run stock programs.
final class Workbench {
  /// The extension of this build, which SwiftPM puts beside the tests.
  static let library = Program.built("libsealedsqlite.so")

  static let canary = "canary-of-the-extension"

  let folder = ScratchFolder()

  init() {
    for (name, seed) in [("key", 1), ("other-key", 2)] as [(String, UInt8)] {
      let isMade = FileManager.default.createFile(
        atPath: path(name), contents: Data(Self.keyBytes(seed)),
        attributes: [.posixPermissions: 0o600])
      precondition(isMade, "no file \(name)")
    }
  }

  static func keyBytes(_ seed: UInt8) -> [UInt8] { (0..<32).map { $0 &* 7 &+ seed } }

  /// Opens the database "a.db" by GRDB, with the key in the file "key".
  func pool() throws -> DatabasePool {
    let key = SecretBytes(copying: Self.keyBytes(1))
    return try SealedDatabase.openPool(at: folder("a.db"), key: key)
  }

  func path(_ name: String) -> String { folder.path(name) }

  func write(_ bytes: [UInt8], to name: String, permissions: mode_t = 0o600) throws {
    chmod(try folder.file(name, bytes), permissions)
  }

  func bytes(_ name: String) throws -> Data { Data(try folder.bytes(name)) }

  /// Runs the distribution's shell in this directory, without the extension.
  func stockShell(_ arguments: String...) throws -> Program {
    try run("/usr/bin/sqlite3", arguments)
  }

  /// Runs the distribution's shell in this directory, with the extension loaded.
  func shell(_ commands: String...) throws -> Program {
    try run("/usr/bin/sqlite3", ["-bail", ":memory:", ".load \(Self.library)"] + commands)
  }

  /// Runs the distribution's Python in this directory, after three lines that load the extension.
  func python(_ script: String, _ arguments: String...) throws -> Program {
    let loading = """
      import os, sqlite3, sys
      loader = sqlite3.connect(":memory:"); loader.enable_load_extension(True)
      loader.load_extension(\"\(Self.library)\")

      """
    return try run("/usr/bin/python3", ["-c", loading + script] + arguments)
  }

  func run(_ program: String, _ arguments: [String]) throws -> Program {
    try Program.run(program, arguments, in: folder.url.path)
  }

  /// The files of this directory that contain the canary.
  func filesWithCanary() throws -> [String] {
    try folder.names().filter {
      try bytes($0).range(of: Data(Self.canary.utf8)) != nil
    }
  }
}

extension Program {
  /// Expects this output, and no error.
  func expectOutput(_ expected: String, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(errors == "", sourceLocation: sourceLocation)
    #expect(text == expected, sourceLocation: sourceLocation)
  }
}
