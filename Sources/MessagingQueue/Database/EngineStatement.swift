internal import CSQLite
internal import GRDB

/// A statement on the engine's tables, bound and run straight by SQLite.
///
/// GRDB takes parameters as an array of values whose types are erased, and looks before and after each
/// run whether anybody observes what it changes: that is much of what a row of a batch costs. Who keeps
/// the statement, begins and commits stays GRDB; its observation does not see these rows, which are the
/// engine's own and have an observation of theirs.
struct EngineStatement {
  private let statement: Statement

  /// - Parameter sql: its parameters are `?`, or `?1`, `?2` and so on.
  init(_ db: Database, _ sql: String) throws {
    statement = try db.cachedStatement(sql: sql)
    // From here on GRDB takes them for given.
    statement.setUncheckedArguments([])
  }

  /// For the rows of the log: timetoken, number of the channel, priority, due, expires, ordering key,
  /// headers, payload.
  static func messages(_ db: Database) throws -> EngineStatement {
    try EngineStatement(
      db,
      """
      INSERT INTO message (timetoken, channel_id, priority, due, expires, ordering_key, headers, payload)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """)
  }

  /// Runs it to its end with a value for each parameter, in their order.
  func execute<each Value: Bindable>(_ values: repeat each Value) throws {
    let handle = unsafe statement.sqliteStatement
    defer { unsafe finish(handle) }
    try unsafe bind(repeat each values, to: handle)
    try check(unsafe sqlite3_step(handle), expecting: SQLITE_DONE)
  }

  /// The first column of its first row, which is a number; nil if it has no row.
  func number<each Value: Bindable>(_ values: repeat each Value) throws -> Int64? {
    let handle = unsafe statement.sqliteStatement
    defer { unsafe finish(handle) }
    try unsafe bind(repeat each values, to: handle)
    let result = unsafe sqlite3_step(handle)
    if result == SQLITE_DONE { return nil }
    try check(result, expecting: SQLITE_ROW)
    return unsafe sqlite3_column_int64(handle, 0)
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
    // Or a payload would stay in memory until the next run.
    unsafe sqlite3_clear_bindings(handle)
  }

  private func check(_ result: Int32, expecting success: Int32 = SQLITE_OK) throws {
    guard result == success else { throw DatabaseError(resultCode: ResultCode(rawValue: result)) }
  }
}

/// What SQLite has a type for.
protocol Bindable {
  /// Copies itself to a parameter, and returns SQLite's result.
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32
}

extension Int64: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    unsafe sqlite3_bind_int64(statement, index, self)
  }
}

extension Int: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    unsafe Int64(self).bind(to: statement, at: index)
  }
}

extension String: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    // The pointer is never nil: a C string ends with a zero.
    unsafe withCString { characters in
      unsafe sqlite3_bind_text64(
        statement, index, characters, UInt64(utf8.count), copiesBytes, UInt8(SQLITE_UTF8))
    }
  }
}

extension [UInt8]: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    // A pointer that is nil would be NULL.
    if isEmpty { return unsafe sqlite3_bind_zeroblob(statement, index, 0) }
    return unsafe withUnsafeBytes { bytes in
      unsafe sqlite3_bind_blob64(
        statement, index, bytes.baseAddress, UInt64(bytes.count), copiesBytes)
    }
  }
}

extension Optional: Bindable where Wrapped: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    switch self {
    case .some(let value): unsafe value.bind(to: statement, at: index)
    case .none: unsafe sqlite3_bind_null(statement, index)
    }
  }
}

/// `SQLITE_TRANSIENT`, which no importer of C understands.
private var copiesBytes: sqlite3_destructor_type {
  unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
