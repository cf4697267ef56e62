internal import CSQLite
internal import Foundation
package import GRDB

extension Database {
  /// Runs an ``EngineStatement`` to its end.
  package func run<each Value: Bindable>(_ sql: String, _ values: repeat each Value) throws {
    try EngineStatement(self, sql).execute(repeat each values)
  }

  /// The first column of the first row of an ``EngineStatement``, which is a number; nil if there is
  /// no row.
  package func number<each Value: Bindable>(_ sql: String, _ values: repeat each Value) throws
    -> Int64?
  {
    try EngineStatement(self, sql).number(repeat each values)
  }
}

extension Row {
  /// A column's bytes, copied once.
  func bytes(at index: Int) throws -> [UInt8] {
    try withUnsafeData(atIndex: index) { [UInt8]($0 ?? Data()) }
  }
}

/// A statement on the engine's tables that is bound and run by SQLite directly.
///
/// GRDB takes arguments as an array of type-erased values, and looks before and after each run for
/// observers. That is a large part of the cost of a row in a batch. GRDB still caches the
/// statement, begins and commits. Its observation does not see these rows, which belong to the
/// engine and have notifications of their own.
package struct EngineStatement {
  private let statement: Statement

  /// - Parameter sql: with parameters `?`, or `?1`, `?2` and so on.
  package init(_ db: Database, _ sql: String) throws {
    statement = try db.cachedStatement(sql: sql)
    // From here on GRDB does not check that the arguments are set.
    statement.setUncheckedArguments([])
  }

  /// Inserts a row of the log: timetoken, number of the channel, priority, due, expires, ordering
  /// key, headers, payload.
  static func messages(_ db: Database) throws -> EngineStatement {
    try EngineStatement(
      db,
      """
      INSERT INTO message (timetoken, channel_id, priority, due, expires, ordering_key, headers, payload)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """)
  }

  /// Runs the statement to its end with a value for each parameter, in their order.
  package func execute<each Value: Bindable>(_ values: repeat each Value) throws {
    let handle = unsafe statement.sqliteStatement
    defer { unsafe finish(handle) }
    try unsafe bind(repeat each values, to: handle)
    try check(unsafe sqlite3_step(handle), expecting: SQLITE_DONE)
  }

  fileprivate func number<each Value: Bindable>(_ values: repeat each Value) throws -> Int64? {
    try first(repeat each values) { $0.number(at: 0) }
  }

  /// Runs the statement as far as its first row, and decodes that; nil if there is none.
  package func first<each Value: Bindable, Result>(
    _ values: repeat each Value, decode: (EngineRow) throws -> Result
  ) throws -> Result? {
    let handle = unsafe statement.sqliteStatement
    defer { unsafe finish(handle) }
    try unsafe bind(repeat each values, to: handle)
    let result = unsafe sqlite3_step(handle)
    if result == SQLITE_DONE { return nil }
    try check(result, expecting: SQLITE_ROW)
    return try unsafe decode(EngineRow(handle: handle))
  }

  private func bind<each Value: Bindable>(
    _ values: repeat each Value, to handle: OpaquePointer
  ) throws {
    var index: Int32 = 0
    for value in repeat each values {
      index += 1
      try check(unsafe value.bind(to: handle, at: index))
    }
  }

  private func finish(_ handle: OpaquePointer) {
    unsafe sqlite3_reset(handle)
    // Otherwise a payload would stay in memory until the next run.
    unsafe sqlite3_clear_bindings(handle)
  }

  private func check(_ result: Int32, expecting success: Int32 = SQLITE_OK) throws {
    guard result == success else { throw DatabaseError(resultCode: ResultCode(rawValue: result)) }
  }
}

/// The row of an ``EngineStatement``, while the statement stands on it.
@safe package struct EngineRow {
  fileprivate let handle: OpaquePointer

  package func number(at index: Int32) -> Int64 { unsafe sqlite3_column_int64(handle, index) }

  package func optionalNumber(at index: Int32) -> Int64? {
    unsafe sqlite3_column_type(handle, index) == SQLITE_NULL ? nil : number(at: index)
  }

  /// Bytes that are not UTF-8 are replaced, as by GRDB.
  package func text(at index: Int32) -> String? {
    unsafe sqlite3_column_text(handle, index).map { unsafe String(cString: $0) }
  }

  /// Empty for NULL.
  package func bytes(at index: Int32) -> [UInt8] {
    guard let start = unsafe sqlite3_column_blob(handle, index) else { return [] }
    let count = Int(unsafe sqlite3_column_bytes(handle, index))
    return unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }
}

/// A value that SQLite can store.
package protocol Bindable {
  /// Binds the value, as a copy, to a parameter and returns SQLite's result code.
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32
}

// GRDB's functions of the same name bind numbers.
extension Int64: Bindable {}
extension Int: Bindable {}

extension String: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    // The pointer is never nil, as a C string ends with a zero.
    unsafe withCString { characters in
      unsafe sqlite3_bind_text64(
        statement, index, characters, UInt64(utf8.count), copiesBytes, UInt8(SQLITE_UTF8))
    }
  }
}

extension [UInt8]: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    // SQLite would store NULL for a nil pointer.
    if isEmpty { return unsafe sqlite3_bind_zeroblob(statement, index, 0) }
    return unsafe withUnsafeBytes { bytes in
      unsafe sqlite3_bind_blob64(
        statement, index, bytes.baseAddress, UInt64(bytes.count), copiesBytes)
    }
  }
}

extension Optional: Bindable where Wrapped: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    switch self {
    case .some(let value): unsafe value.bind(to: statement, at: index)
    case .none: unsafe sqlite3_bind_null(statement, index)
    }
  }
}

/// `SQLITE_TRANSIENT`, a macro that Swift cannot import from C.
private var copiesBytes: sqlite3_destructor_type {
  unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
