internal import CSQLite
internal import SealedVFS

/// The SQL functions of the extension; neither can be called from a schema.
///
/// - `sealed_error()`: the last fault in any sealed file of the process, in words, or NULL.
///   SQLite's own messages are less precise: they report a refused key as "authorization denied".
/// - `sealed_reserve()`: reserves 40 bytes in each page that the next `VACUUM` or `VACUUM INTO` of
///   the main database writes, so that a plain database can be copied into a sealed one. It returns
///   40.
enum SQLFunctions {
  private typealias ExtensionEntry = @convention(c) () -> Void

  /// Adds the functions to a connection, and to all connections that are opened later.
  static func addToEveryConnection(after connection: OpaquePointer?) -> Int32 {
    let entry:
      @convention(c) (
        OpaquePointer?, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
        UnsafePointer<sqlite3_api_routines>?
      ) -> Int32 = { connection, _, _ in unsafe SQLFunctions.add(to: connection) }
    // SQLite's header declares the entry without its parameters and calls it with them.
    let result = unsafe sqlite3_auto_extension(unsafeBitCast(entry, to: ExtensionEntry.self))
    return result == SQLITE_OK ? unsafe add(to: connection) : result
  }

  private static func add(to connection: OpaquePointer?) -> Int32 {
    let flags = SQLITE_UTF8 | SQLITE_DIRECTONLY
    let result = unsafe sqlite3_create_function_v2(
      connection, "sealed_error", 0, flags, nil,
      { context, _, _ in
        guard let fault = SealedVFS.lastFault else { return unsafe sqlite3_result_null(context) }
        let text = unsafe sqliteCopy(of: fault.description)
        unsafe sqlite3_result_text(context, text, -1) { unsafe sqlite3_free($0) }
      }, nil, nil, nil)
    guard result == SQLITE_OK else { return result }
    return unsafe sqlite3_create_function_v2(
      connection, "sealed_reserve", 0, flags, nil,
      { context, _, _ in
        guard let connection = unsafe sqlite3_context_db_handle(context) else {
          return unsafe sqlite3_result_null(context)
        }
        let count = unsafe SealedConnection.reserveBytes(of: connection)
        unsafe sqlite3_result_int(context, Int32(count))
      }, nil, nil, nil)
  }
}
