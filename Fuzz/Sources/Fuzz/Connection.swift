import CFuzzedSQLite

/// A connection that ignores errors, because a fuzzer must continue after them.
final class Connection {
  private(set) var pointer: OpaquePointer?

  init(_ path: String, vfs: String) {
    sqlite3_open_v2(path, &pointer, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs)
  }

  deinit { sqlite3_close_v2(pointer) }

  /// The first columns of all rows; nil after an error.
  @discardableResult
  func run(_ sql: String) -> [String]? {
    var rows: [String] = []
    var result = SQLITE_OK
    sql.withCString { start in
      var next: UnsafePointer<CChar>? = start
      while let text = next, text.pointee != 0, result == SQLITE_OK {
        var statement: OpaquePointer?
        result = sqlite3_prepare_v2(pointer, text, -1, &statement, &next)
        guard result == SQLITE_OK, statement != nil else { continue }
        var step = sqlite3_step(statement)
        while step == SQLITE_ROW {
          rows.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
          step = sqlite3_step(statement)
        }
        if step != SQLITE_DONE { result = step }
        sqlite3_finalize(statement)
      }
    }
    return result == SQLITE_OK ? rows : nil
  }

  /// SQLite's file handle of the database.
  ///
  /// Writing pages through it seals them.
  var file: UnsafeMutablePointer<sqlite3_file>? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    sqlite3_file_control(pointer, "main", SQLITE_FCNTL_FILE_POINTER, &file)
    return file
  }

  /// SQLite's file handle of the log or the journal.
  var sibling: UnsafeMutablePointer<sqlite3_file>? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    sqlite3_file_control(pointer, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file)
    return file
  }
}
