internal import CSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// Writes a new sealed database through SQLite's C interface.
///
/// Only that interface stores text unchanged, including bytes that are not well-formed.
@safe final class NewDatabase {
  fileprivate let connection: OpaquePointer
  private let registration: KeyRegistration
  private let path: String

  /// Makes the file.
  ///
  /// SQLite's rollback journal protects it against a failing statement. A kill leaves it
  /// incomplete: the caller renames it to its final path when it is complete.
  init(
    at path: FilePath, key: borrowing SecretBytes, over base: String = "unix"
  ) throws(SealedDatabaseError) {
    let full = try SealedVFS.fullPath(path)
    let registration = try SealedVFS.register(key: key, at: path, over: base, setsReserve: true)
    var opened: OpaquePointer?
    let flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOMUTEX
    let result = unsafe sqlite3_open_v2(full, &opened, flags, SealedVFS.name)
    guard result == SQLITE_OK, let connection = unsafe opened else {
      unsafe sqlite3_close_v2(opened)
      throw registration.explain(result, full)
    }
    unsafe self.connection = connection
    self.registration = registration
    self.path = full
    guard unsafe SealedConnection.vfsName(of: connection) == SealedVFS.name,
      unsafe SealedConnection.reserveBytes(of: connection) == FileFormat.sealed.reservedByteCount
    else { throw SealedDatabaseError(.notOnSealedVFS, path: full) }
    try run("PRAGMA temp_store = MEMORY; PRAGMA synchronous = OFF")
  }

  deinit {
    unsafe sqlite3_close_v2(connection)
  }

  /// Runs trusted statements.
  func run(_ sql: String) throws(SealedDatabaseError) {
    let result = unsafe sqlite3_exec(connection, sql, nil, nil, nil)
    if result != SQLITE_OK { throw failure(result) }
  }

  /// The error for a result that the source did not cause.
  fileprivate func failure(_ result: Int32) -> SealedDatabaseError {
    registration.explain(result, path)
  }

  /// Returns the rows of a trusted query, as text.
  func rows(
    _ sql: String, _ arguments: String...
  ) throws(SealedDatabaseError) -> [[String?]] {
    var statement: OpaquePointer?
    let prepared = unsafe sqlite3_prepare_v2(connection, sql, -1, &statement, nil)
    defer { unsafe sqlite3_finalize(statement) }
    guard prepared == SQLITE_OK else { throw failure(prepared) }
    for (index, argument) in arguments.enumerated() {
      let value = StoredValue.text(Array(argument.utf8))
      let bound = unsafe Self.bind(statement, Int32(index + 1), value, .utf8)
      guard bound == SQLITE_OK else { throw failure(bound) }
    }
    var rows: [[String?]] = []
    var result = unsafe sqlite3_step(statement)
    while result == SQLITE_ROW {
      let count = unsafe sqlite3_column_count(statement)
      rows.append(
        (0..<count).map { index in
          unsafe sqlite3_column_text(statement, index).map { unsafe String(cString: $0) }
        })
      result = unsafe sqlite3_step(statement)
    }
    guard result == SQLITE_DONE else { throw failure(result) }
    return rows
  }

  /// Runs one CREATE statement from an untrusted schema.
  ///
  /// An authorizer refuses queries within it, and virtual tables. Other statements of a schema
  /// could attach files, drop tables, or count forever.
  ///
  /// - Returns: nil, or the reason for which SQLite refuses the statement.
  /// - Throws: an error that the statement did not cause, such as a full disk.
  func create(_ sql: String) throws(SealedDatabaseError) -> String? {
    guard sql.utf8.prefix(7).elementsEqual("CREATE ".utf8) else {
      return "it is not a CREATE statement"
    }
    _ = unsafe sqlite3_set_authorizer(
      connection,
      { _, action, _, _, _, _ in
        [SQLITE_SELECT, SQLITE_CREATE_VTABLE].contains(action) ? SQLITE_DENY : SQLITE_OK
      }, nil)
    defer { _ = unsafe sqlite3_set_authorizer(connection, nil, nil) }
    var statement: OpaquePointer?
    var result = unsafe sqlite3_prepare_v2(connection, sql, -1, &statement, nil)
    defer { unsafe sqlite3_finalize(statement) }
    if result == SQLITE_OK { result = unsafe sqlite3_step(statement) }
    if [SQLITE_OK, SQLITE_DONE].contains(result) { return nil }
    guard Self.isRefusal(result) else { throw failure(result) }
    return unsafe String(cString: sqlite3_errmsg(connection))
  }

  /// Prepares an INSERT; nil if SQLite refuses it because it lacks a function or a collation.
  func insertion(
    _ sql: String, _ encoding: TextEncoding
  ) throws(SealedDatabaseError) -> RowInsertion? {
    var statement: OpaquePointer?
    let result = unsafe sqlite3_prepare_v2(connection, sql, -1, &statement, nil)
    guard let statement = unsafe statement else {
      if Self.isRefusal(result) { return nil }
      throw failure(result)
    }
    return unsafe RowInsertion(statement, encoding, into: self)
  }

  /// Whether a result is due to the source's statement or row.
  ///
  /// Any other failure, such as one of the disk, says nothing about the source.
  static func isRefusal(_ result: Int32) -> Bool {
    [SQLITE_ERROR, SQLITE_AUTH, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG]
      .contains(result & 0xFF)
  }

  /// Binds a copy of a value.
  static func bind(
    _ statement: OpaquePointer?, _ index: Int32, _ value: StoredValue, _ encoding: TextEncoding
  ) -> Int32 {
    // SQLITE_TRANSIENT, which the header makes with a cast that Swift does not import.
    let transient = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch value {
    case .null: return unsafe sqlite3_bind_null(statement, index)
    case .integer(let number): return unsafe sqlite3_bind_int64(statement, index, number)
    case .real(let number): return unsafe sqlite3_bind_double(statement, index, number)
    case .text(let bytes):
      return unsafe (bytes + [0]).withUnsafeBytes { start in
        unsafe sqlite3_bind_text64(
          statement, index, start.baseAddress?.assumingMemoryBound(to: CChar.self),
          UInt64(bytes.count), transient, encoding.rawValue)
      }
    case .blob(let bytes):
      return unsafe (bytes + [0]).withUnsafeBytes { start in
        unsafe sqlite3_bind_blob64(
          statement, index, start.baseAddress, UInt64(bytes.count), transient)
      }
    }
  }
}

/// A prepared INSERT into a ``NewDatabase``.
@safe final class RowInsertion {
  private let statement: OpaquePointer
  private let encoding: TextEncoding
  private let database: NewDatabase

  init(_ statement: OpaquePointer, _ encoding: TextEncoding, into database: NewDatabase) {
    unsafe self.statement = statement
    self.encoding = encoding
    self.database = database
  }

  deinit {
    unsafe sqlite3_finalize(statement)
  }

  /// Inserts a row.
  ///
  /// - Returns: whether the table has the row now; a constraint can refuse it.
  /// - Throws: an error that the row did not cause.
  func insert(_ values: [StoredValue]) throws(SealedDatabaseError) -> Bool {
    defer { _ = unsafe sqlite3_reset(statement) }
    var result = SQLITE_OK
    for (index, value) in values.enumerated() where result == SQLITE_OK {
      result = unsafe NewDatabase.bind(statement, Int32(index + 1), value, encoding)
    }
    if result == SQLITE_OK { result = unsafe sqlite3_step(statement) }
    if result == SQLITE_DONE { return unsafe sqlite3_changes(database.connection) > 0 }
    if NewDatabase.isRefusal(result) { return false }
    throw database.failure(result)
  }
}
