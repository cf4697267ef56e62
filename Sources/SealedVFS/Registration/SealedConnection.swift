internal import CSQLite

/// Queries on an open SQLite connection, for callers that got it from another library.
public enum SealedConnection {
  /// The name of the main database's VFS; nil if SQLite does not report it.
  ///
  /// A connection must not be used if the name differs from ``SealedVFS/name``.
  public static func vfsName(of connection: OpaquePointer) -> String? {
    var name: UnsafeMutablePointer<CChar>?
    let result = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_VFSNAME, &name)
    guard result == SQLITE_OK, let name = unsafe name else { return nil }
    defer { unsafe sqlite3_free(name) }
    return unsafe String(cString: name)
  }

  /// The reason for a failed call on this connection that SQLite reported by an extended result
  /// code.
  ///
  /// All databases of the connection are searched, attached ones included.
  ///
  /// - Returns: nil if the VFS found nothing that SQLite reports so: the failure has another cause.
  public static func fault(
    of connection: OpaquePointer, reportedAs resultCode: Int32
  ) -> SealedDatabaseError? {
    var index: Int32 = 0
    while let name = unsafe sqlite3_db_name(connection, index) {
      if let found = unsafe file(of: connection, name)?.faults.newest(reportedAs: resultCode) {
        return found
      }
      index += 1
    }
    return nil
  }

  /// The file of one of a connection's databases; nil if it is not on the sealed VFS.
  static func file(of connection: OpaquePointer, _ schema: UnsafePointer<CChar>) -> MainFile? {
    var memory: UnsafeMutablePointer<sqlite3_file>?
    let result = unsafe sqlite3_file_control(
      connection, schema, SQLITE_FCNTL_FILE_POINTER, &memory)
    guard result == SQLITE_OK else { return nil }
    return unsafe FileCallbacks.file(in: memory) as? MainFile
  }

  /// Reserves the bytes that a format needs in each page; by default 40 for nonce and tag.
  ///
  /// Call it before the database's first page is written.
  ///
  /// - Returns: the number of bytes that each page reserves, or will reserve once it is written.
  public static func reserveBytes(
    of connection: OpaquePointer, for format: FileFormat = .sealed
  ) -> Int {
    var count = Int32(format.reservedByteCount)
    _ = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
    count = -1
    _ = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
    return Int(count)
  }

  /// The identity of the SQLite library that the sealed VFS is linked to.
  ///
  /// Compare it with `sqlite_source_id()` of a connection.
  public static var libraryID: String {
    unsafe sqlite3_sourceid().map { unsafe String(cString: $0) } ?? ""
  }
}
