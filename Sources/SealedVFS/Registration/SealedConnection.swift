internal import CSQLite

/// Questions to an open SQLite connection, for those who got it from another library.
public enum SealedConnection {
  /// The name of the VFS that the main database is on; nil when SQLite does not say.
  ///
  /// Anything but ``SealedVFS/name`` means that the connection must not be used.
  public static func vfsName(of connection: OpaquePointer) -> String? {
    var name: UnsafeMutablePointer<CChar>?
    let result = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_VFSNAME, &name)
    guard result == SQLITE_OK, let name = unsafe name else { return nil }
    defer { unsafe sqlite3_free(name) }
    return unsafe String(cString: name)
  }

  /// Why a call on this connection failed that SQLite reported by an extended result code.
  ///
  /// All its databases are asked, attached ones included.
  ///
  /// - Returns: nil when the VFS found nothing that SQLite reports so: the failure has another cause.
  public static func fault(
    of connection: OpaquePointer, reportedAs resultCode: Int32
  ) -> SealedFileError? {
    var index: Int32 = 0
    while let name = unsafe sqlite3_db_name(connection, index) {
      if let found = unsafe file(of: connection, name)?.faults.newest(reportedAs: resultCode) {
        return found
      }
      index += 1
    }
    return nil
  }

  /// The file of one of a connection's databases; nil when it is not on the sealed VFS.
  static func file(of connection: OpaquePointer, _ schema: UnsafePointer<CChar>) -> MainFile? {
    var memory: UnsafeMutablePointer<sqlite3_file>?
    let result = unsafe sqlite3_file_control(
      connection, schema, SQLITE_FCNTL_FILE_POINTER, &memory)
    guard result == SQLITE_OK else { return nil }
    return unsafe FileCallbacks.file(in: memory) as? MainFile
  }

  /// Reserves what a format needs of each page, 40 bytes for nonce and tag by default; before the
  /// database's first page is written.
  ///
  /// - Returns: how many bytes each page reserves now, or will.
  public static func reserveBytes(
    of connection: OpaquePointer, for format: FileFormat = .sealed
  ) -> Int {
    var count = Int32(format.reservedByteCount)
    _ = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
    count = -1
    _ = unsafe sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
    return Int(count)
  }

  /// The identity of the SQLite library that the sealed VFS is linked to, to be compared with
  /// `sqlite_source_id()` of a connection.
  public static var libraryID: String {
    unsafe sqlite3_sourceid().map { unsafe String(cString: $0) } ?? ""
  }
}
