internal import CSQLite

/// A prepared INSERT into a ``NewDatabase``.
@safe package final class RowInsertion {
  private let statement: OpaquePointer
  private let encoding: TextEncoding
  private let connection: OpaquePointer
  private let registration: KeyRegistration
  private let path: String

  init(
    _ statement: OpaquePointer, _ encoding: TextEncoding, _ connection: OpaquePointer,
    _ registration: KeyRegistration, _ path: String
  ) {
    unsafe self.statement = statement
    self.encoding = encoding
    unsafe self.connection = connection
    self.registration = registration
    self.path = path
  }

  deinit {
    unsafe sqlite3_finalize(statement)
  }

  /// Inserts a row.
  ///
  /// - Returns: whether it is there now; a constraint of the table may not take it.
  /// - Throws: what is no fault of the row.
  package func insert(_ values: [StoredValue]) throws(SealedFileError) -> Bool {
    defer { _ = unsafe sqlite3_reset(statement) }
    for (index, value) in values.enumerated() {
      let result = unsafe NewDatabase.bind(statement, Int32(index + 1), value, encoding)
      if result != SQLITE_OK { return false }  // longer than SQLite takes
    }
    let result = unsafe sqlite3_step(statement)
    switch result & 0xFF {
    case SQLITE_DONE: return unsafe sqlite3_changes(connection) > 0
    case SQLITE_FULL, SQLITE_IOERR, SQLITE_NOMEM, SQLITE_CANTOPEN, SQLITE_READONLY:
      throw registration.explain(result, path)
    default: return false
    }
  }
}
