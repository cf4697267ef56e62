import CSQLite
import Foundation

/// The error that SQLite returned.
struct SQLiteFailure: Error, Equatable, CustomStringConvertible {
  let code: Int32
  let message: String

  var description: String { "SQLite \(code): \(message)" }
  var primaryCode: Int32 { code & 0xFF }
}

/// A connection through SQLite's C interface to the sealed VFS, without a library above it.
final class Connection {
  let pointer: OpaquePointer
  private var isOpen = true

  init(
    _ path: String, flags: Int32 = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
    vfs: String? = nil
  ) throws {
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_URI, vfs)
    guard result == SQLITE_OK, let opened else {
      let failure = SQLiteFailure(
        code: opened.map { sqlite3_extended_errcode($0) } ?? result,
        message: String(cString: sqlite3_errstr(result)))
      sqlite3_close_v2(opened)
      throw failure
    }
    pointer = opened
    sqlite3_extended_result_codes(pointer, 1)
  }

  deinit { close() }

  @discardableResult
  func close() -> Int32 {
    guard isOpen else { return SQLITE_OK }
    isOpen = false
    return sqlite3_close(pointer)
  }

  /// Runs statements and returns the first column of all rows.
  @discardableResult
  func run(_ sql: String) throws -> [String] {
    var rows: [String] = []
    var rest: String? = sql
    while let text = rest, !text.allSatisfy(\.isWhitespace) {
      var statement: OpaquePointer?
      var tail = ""
      let prepared = text.withCString { start in
        var end: UnsafePointer<CChar>?
        let result = sqlite3_prepare_v2(pointer, start, -1, &statement, &end)
        if let end { tail = String(cString: end) }
        return result
      }
      defer { sqlite3_finalize(statement) }
      try check(prepared)
      rest = tail
      var step = sqlite3_step(statement)
      while step == SQLITE_ROW {
        if let value = sqlite3_column_text(statement, 0) { rows.append(String(cString: value)) }
        step = sqlite3_step(statement)
      }
      try check(step == SQLITE_DONE ? SQLITE_OK : step)
    }
    return rows
  }

  func first(_ sql: String) throws -> String? { try run(sql).first }

  private func check(_ result: Int32) throws {
    if result != SQLITE_OK {
      throw SQLiteFailure(
        code: sqlite3_extended_errcode(pointer), message: String(cString: sqlite3_errmsg(pointer)))
    }
  }
}
