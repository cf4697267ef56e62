internal import CSQLite
internal import FileLayer

/// A connection of this module's own, through SQLite's C interface.
@safe final class OwnConnection {
  let pointer: OpaquePointer
  private let explain: (Int32, String) -> SealedDatabaseError
  private var isOpen = true

  /// Opens a database by URI or path.
  ///
  /// - Parameters:
  ///   - busyTimeout: how long a statement waits for the locks of others.
  ///   - explain: makes an error from an extended result code and SQLite's message.
  init(
    _ name: String, vfs: String, isReadOnly: Bool, busyTimeout: Duration = .seconds(5),
    explain: @escaping (Int32, String) -> SealedDatabaseError
  ) throws(SealedDatabaseError) {
    self.explain = explain
    var opened: OpaquePointer?
    let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
    let flags = access | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOMUTEX
    let result = unsafe sqlite3_open_v2(name, &opened, flags, vfs)
    guard result == SQLITE_OK, let connection = unsafe opened else {
      let code = unsafe opened.map { unsafe sqlite3_extended_errcode($0) } ?? result
      let message = unsafe opened.map { unsafe Self.message(of: $0) }
      unsafe sqlite3_close_v2(opened)
      throw explain(code, message ?? "")
    }
    unsafe pointer = connection
    unsafe sqlite3_extended_result_codes(connection, 1)
    unsafe sqlite3_busy_timeout(connection, Int32(clamping: busyTimeout.wholeMilliseconds))
  }

  deinit { close() }

  /// Closes the connection; the caller must not use it afterwards.
  func close() {
    guard isOpen else { return }
    isOpen = false
    unsafe sqlite3_close_v2(pointer)
  }

  /// Runs the first statement of a text to its end, and ignores the rest of the text.
  ///
  /// - Returns: the columns of each row, as text; NULL is nil.
  @discardableResult
  func run(_ sql: String) throws(SealedDatabaseError) -> [[String?]] {
    var statement: OpaquePointer?
    let prepared = unsafe sqlite3_prepare_v2(pointer, sql, -1, &statement, nil)
    defer { unsafe sqlite3_finalize(statement) }
    guard prepared == SQLITE_OK else { throw failure() }
    var rows: [[String?]] = []
    while true {
      switch unsafe sqlite3_step(statement) {
      case SQLITE_ROW:
        rows.append(
          (0..<(unsafe sqlite3_column_count(statement))).map { index in
            unsafe sqlite3_column_text(statement, index).map { unsafe String(cString: $0) }
          })
      case SQLITE_DONE: return rows
      default: throw failure()
      }
    }
  }

  /// The first value of a query.
  func first(_ sql: String) throws(SealedDatabaseError) -> String? {
    try run(sql).first.flatMap { $0.first ?? nil }
  }

  /// Calls `body` from time to time while `work` runs statements.
  func reporting(
    _ body: () -> Void, during work: () throws(SealedDatabaseError) -> Void
  ) throws(SealedDatabaseError) {
    try withoutActuallyEscaping(body) { (body) throws(SealedDatabaseError) in
      let box = unsafe Unmanaged.passRetained(Report(body: body))
      defer {
        unsafe sqlite3_progress_handler(pointer, 0, nil, nil)
        unsafe box.release()
      }
      unsafe sqlite3_progress_handler(
        pointer, 2000,
        { context in
          if let context = unsafe context {
            unsafe Unmanaged<Report>.fromOpaque(context).takeUnretainedValue().body()
          }
          return 0
        }, unsafe box.toOpaque())
      try work()
    }
  }

  private final class Report {
    let body: () -> Void
    init(body: @escaping () -> Void) { self.body = body }
  }

  private func failure() -> SealedDatabaseError {
    unsafe explain(sqlite3_extended_errcode(pointer), Self.message(of: pointer))
  }

  private static func message(of connection: OpaquePointer) -> String {
    unsafe sqlite3_errmsg(connection).map { unsafe String(cString: $0) } ?? ""
  }
}
