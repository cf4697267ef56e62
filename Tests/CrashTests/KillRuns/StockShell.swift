import Foundation
import TestSupport

/// The distribution's own `sqlite3`, run on a sealed database by mistake.
enum StockShell {
  static let statements = [
    ".tables", "PRAGMA integrity_check", "PRAGMA journal_mode=DELETE", "VACUUM",
    "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)", "PRAGMA wal_checkpoint(TRUNCATE)",
  ]

  /// Runs one statement, and returns the names of files it changed.
  ///
  /// The shared-memory index is left out, as it contains nothing that the log does not.
  static func changedFiles(running statement: String, on tool: CommandLineTool) throws -> [String] {
    let before = try contents(of: tool)
    _ = try Program.run(Program.sqlite3 ?? "", [tool.database.path, statement])
    let after = try contents(of: tool)
    return Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }.sorted()
  }

  private static func contents(of tool: CommandLineTool) throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for file in try FileSearch.files(in: tool.home) where !file.path.hasSuffix("-shm") {
      contents[file.lastPathComponent] = try Data(contentsOf: file)
    }
    return contents
  }
}
