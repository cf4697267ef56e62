internal import CSQLite

/// The connection that loads the extension: it was opened before, on another VFS than the sealed one.
enum LoadingConnection {
  /// Keeps what it will sort, and put into temporary tables, off the disk: it may attach a sealed
  /// database, and its temporary files do not pass through our VFS.
  ///
  /// SQLite drops the temporary tables that there are when this setting changes, so a connection
  /// that has some keeps them and its setting.
  static func keepTemporaryDataInMemory(_ connection: OpaquePointer?) {
    guard unsafe !hasTemporaryTables(connection) else { return }
    _ = unsafe sqlite3_exec(connection, "PRAGMA temp_store = MEMORY", nil, nil, nil)
  }

  private static func hasTemporaryTables(_ connection: OpaquePointer?) -> Bool {
    var statement: OpaquePointer?
    defer { unsafe sqlite3_finalize(statement) }
    let query = "SELECT 1 FROM sqlite_temp_schema LIMIT 1"
    guard unsafe sqlite3_prepare_v2(connection, query, -1, &statement, nil) == SQLITE_OK else {
      return true
    }
    return unsafe sqlite3_step(statement) != SQLITE_DONE
  }
}
