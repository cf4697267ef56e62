import CSQLite

/// The error that SQLite returned.
package struct SQLFailure: Error, Equatable, CustomStringConvertible {
  package let code: Int32
  package let message: String

  package var description: String { "SQLite \(code): \(message)" }
  package var primaryCode: Int32 { code & 0xFF }

  package init(code: Int32, message: String) {
    self.code = code
    self.message = message
  }
}

/// A connection through SQLite's C interface, on a named VFS or the process's default.
package final class SQLConnection {
  package let pointer: OpaquePointer
  private var isOwner: Bool

  package init(
    _ path: String, vfs: String? = nil,
    flags: Int32 = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
  ) throws {
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_URI, vfs)
    guard result == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      throw SQLFailure(code: result, message: String(cString: sqlite3_errstr(result)))
    }
    pointer = opened
    isOwner = true
    sqlite3_extended_result_codes(pointer, 1)
  }

  /// Uses a connection that another library made, without closing it.
  package init(borrowing pointer: OpaquePointer) {
    self.pointer = pointer
    isOwner = false
  }

  deinit { close() }

  /// Closes a connection of this object's own, once.
  @discardableResult
  package func close() -> Int32 {
    guard isOwner else { return SQLITE_OK }
    isOwner = false
    return sqlite3_close_v2(pointer)
  }

  /// Runs statements and returns the first column of all rows as text.
  @discardableResult
  package func run(_ sql: String) throws -> [String] {
    var rows: [String] = []
    try each(sql) { statement in
      if let value = sqlite3_column_text(statement, 0) { rows.append(String(cString: value)) }
    }
    return rows
  }

  package func first(_ sql: String) throws -> String? { try run(sql).first }

  /// Runs statements and passes each row to a body.
  package func each(_ sql: String, _ body: (OpaquePointer) throws -> Void) throws {
    try sql.withCString { start in
      var next: UnsafePointer<CChar>? = start
      while let text = next, text.pointee != 0 {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v2(pointer, text, -1, &statement, &next))
        defer { sqlite3_finalize(statement) }
        guard let statement else { continue }
        var step = sqlite3_step(statement)
        while step == SQLITE_ROW {
          try body(statement)
          step = sqlite3_step(statement)
        }
        if step != SQLITE_DONE { try check(step) }
      }
    }
  }

  /// All columns of a row, in a form that shows their types.
  package static func text(of statement: OpaquePointer) -> String {
    (0..<sqlite3_column_count(statement)).map { column in
      let text = sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
      return switch sqlite3_column_type(statement, column) {
      case SQLITE_NULL: "NULL"
      case SQLITE_BLOB: "blob of \(sqlite3_column_bytes(statement, column)) \(text)"
      case SQLITE_TEXT: "'\(text)'"
      default: text
      }
    }.joined(separator: " | ")
  }

  private func check(_ result: Int32) throws {
    if result != SQLITE_OK {
      throw SQLFailure(
        code: sqlite3_extended_errcode(pointer), message: String(cString: sqlite3_errmsg(pointer)))
    }
  }
}

extension SQLConnection {
  /// A digest of all contents, attached databases included.
  ///
  /// It covers the schema and every column of every row. Equal contents have equal digests within a
  /// process.
  package func digest() throws -> Int {
    var hasher = Hasher()
    for schema in try run("SELECT name FROM pragma_database_list") where schema != "temp" {
      var tables: [String] = []
      try each("SELECT type, name, sql FROM \"\(schema)\".sqlite_schema ORDER BY type, name") {
        statement in
        Self.add(statement, to: &hasher)
        if sqlite3_column_text(statement, 0).map({ String(cString: $0) }) == "table" {
          tables.append(String(cString: sqlite3_column_text(statement, 1)))
        }
      }
      try each("PRAGMA \"\(schema)\".user_version") { Self.add($0, to: &hasher) }
      for table in tables {
        try each("SELECT * FROM \"\(schema)\".\"\(table)\"") { Self.add($0, to: &hasher) }
      }
    }
    return hasher.finalize()
  }

  private static func add(_ statement: OpaquePointer, to hasher: inout Hasher) {
    for column in 0..<sqlite3_column_count(statement) {
      hasher.combine(sqlite3_column_type(statement, column))
      let bytes = sqlite3_column_blob(statement, column)
      let count = sqlite3_column_bytes(statement, column)
      hasher.combine(count)
      hasher.combine(bytes: UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    }
  }
}
