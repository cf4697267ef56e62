import Foundation
import TestSupport
import Testing

/// A folder with a plain database, a sealed copy of it, and keys.
///
/// The rows contain a text that can be found in the bytes of a file.
struct ExchangeFixture {
  static let canary = Array("canary of the rows".utf8)

  let folder = ScratchFolder()
  var key: String { folder.path("key") }
  var sealed: String { folder.path("sealed") }

  /// Makes the files.
  ///
  /// - Parameter rowCount: the number of rows. Each has about a kilobyte.
  init(rowCount: Int) throws {
    try self.init(
      plain: """
        CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT, data BLOB);
        WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(rowCount))
        INSERT INTO t SELECT i, 'canary of the rows ' || i, randomblob(1000) FROM n;
        """)
  }

  /// Makes the files, with the plain database that these statements make.
  init(plain statements: String) throws {
    try folder.file("key", (0..<32).map { _ in UInt8.random(in: 0...255) })
    try folder.file("raw", "x'\(String(repeating: "0f", count: 32))'".utf8)
    try folder.shell("plain", statements)
    try importPlain("sealed").expect(0)
  }

  func run(_ arguments: String...) throws -> Program { try Tool.run(["database"] + arguments) }

  func importPlain(_ name: String) throws -> Program {
    try run(
      "import", folder.path("plain"), folder.path(name), "--format", "plain", "--new-key-file", key)
  }

  func export(_ name: String, _ format: String) throws -> Program {
    try Tool.run(exportArguments(name, format))
  }

  func exportArguments(_ name: String, _ format: String) -> [String] {
    let newKey = ["sealed": key, "sqlcipher4": folder.path("raw")][format]
    return [
      "database", "export", sealed, folder.path(name), "--format", format,
      "--key-file", key,
    ] + (newKey.map { ["--new-key-file", $0] } ?? [])
  }
}

extension ScratchFolder {
  /// Runs SQL in the sqlite3 shell, on a plain database of this folder, and returns the output.
  @discardableResult
  func shell(_ name: String, _ sql: String) throws -> String {
    let shell = try Program.run("/usr/bin/sqlite3", ["-bail", path(name), sql]).expect(0)
    return shell.text
  }
}
