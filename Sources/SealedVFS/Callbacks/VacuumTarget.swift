internal import CSQLite

/// Checks the file that a `VACUUM INTO` is about to write, from the database that it reads.
///
/// SQLite attaches the target by its plain name, and opens it like any new database. A sealed file
/// therefore looks for a target later, when SQLite locks that file for reading. At that time SQLite
/// has not written anything.
enum VacuumTarget {
  /// SQLite names the schema "vacuum_db", in later versions "vacuum_" and 16 digits.
  private static let schemaPrefix = "vacuum_"

  /// The reason to refuse the `VACUUM INTO` that a connection has begun; nil if there is none.
  static func fault(of connection: OpaquePointer) -> SealedDatabaseError? {
    var index: Int32 = 2  // after main and temp
    while let schema = unsafe sqlite3_db_name(connection, index) {
      index += 1
      guard unsafe String(cString: schema).hasPrefix(schemaPrefix),
        let name = unsafe sqlite3_db_filename(connection, schema), unsafe name.pointee != 0
      else { continue }  // a plain VACUUM: its copy is a temporary file
      // Only for the message: bytes that are not UTF-8 are replaced.
      let path = unsafe String(cString: name)
      if let reason = unsafe reason(connection, schema) {
        return SealedDatabaseError(.vacuumTargetRefused, path: path, detail: reason)
      }
    }
    return nil
  }

  private static func reason(
    _ connection: OpaquePointer, _ schema: UnsafePointer<CChar>
  ) -> String? {
    var memory: UnsafeMutablePointer<sqlite3_file>?
    guard
      unsafe sqlite3_file_control(connection, schema, SQLITE_FCNTL_FILE_POINTER, &memory)
        == SQLITE_OK,
      let file = unsafe memory, let methods = unsafe file.pointee.pMethods?.pointee
    else { return "its file cannot be examined" }
    var byteCount: Int64 = 0
    guard unsafe methods.xFileSize(file, &byteCount) == SQLITE_OK else {
      return "its length cannot be read"
    }
    if byteCount > 0 { return nil }  // SQLite itself refuses a target that is not empty
    if let target = unsafe FileCallbacks.file(in: file) as? PagedFile {
      return target.showsStandIn ? "it is not marked with sealed_vacuum_into=1" : nil
    }
    // A caller that names another VFS wants a plain file. The default VFS can itself be layered above ours.
    let name = unsafe sqlite3_db_filename(connection, schema)
    let vfs = unsafe sqlite3_uri_parameter(name, "vfs").map { unsafe String(cString: $0) }
    return vfs == nil || vfs == SealedVFS.name
      ? "it has no key, and would hold this database in the clear" : nil
  }
}
