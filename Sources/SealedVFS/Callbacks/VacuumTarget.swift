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
        let name = unsafe sqlite3_db_filename(connection, schema),
        let path = unsafe String(validatingCString: name), !path.isEmpty
      else { continue }  // a plain VACUUM: its copy is a temporary file
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
    var vfs: UnsafeMutablePointer<sqlite3_vfs>?
    guard
      unsafe sqlite3_file_control(connection, schema, SQLITE_FCNTL_FILE_POINTER, &memory)
        == SQLITE_OK,
      unsafe sqlite3_file_control(connection, schema, SQLITE_FCNTL_VFS_POINTER, &vfs) == SQLITE_OK,
      let file = unsafe memory, let methods = unsafe file.pointee.pMethods?.pointee
    else { return nil }
    var byteCount: Int64 = 0
    // SQLite itself refuses a target that is not empty.
    guard unsafe methods.xFileSize(file, &byteCount) == SQLITE_OK, byteCount == 0 else {
      return nil
    }
    if let target = unsafe FileCallbacks.file(in: file) as? PagedFile {
      return target.showsStandIn ? "it is not marked with sealed_vacuum_into=1" : nil
    }
    // A caller that names another VFS asks for a plain file.
    let isOurs = unsafe vfs == sqlite3_vfs_find(SealedVFS.name)
    return isOurs ? "it has no key, and would hold this database in the clear" : nil
  }
}
