internal import CSQLite

/// The file that a `VACUUM INTO` is about to write, seen from the database that it reads.
///
/// SQLite attaches the target by its plain name, and its xOpen is that of any new database. So a sealed
/// file looks for it later, when SQLite locks the file to read it: nothing has been written by then.
enum VacuumTarget {
  /// SQLite names the schema "vacuum_db", in later versions "vacuum_" and 16 digits.
  private static let schemaPrefix = "vacuum_"

  /// Why a connection must not run the `VACUUM INTO` that it has begun; nil where it runs none.
  static func fault(of connection: OpaquePointer) -> SealedFileError? {
    var index: Int32 = 2  // behind main and temp
    while let schema = unsafe sqlite3_db_name(connection, index) {
      index += 1
      guard unsafe String(cString: schema).hasPrefix(schemaPrefix),
        let name = unsafe sqlite3_db_filename(connection, schema),
        let path = unsafe String(validatingCString: name), !path.isEmpty
      else { continue }  // VACUUM alone: its copy is a temporary file
      if let reason = unsafe reason(connection, schema) {
        return SealedFileError(.vacuumTargetRefused, path: path, detail: reason)
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
      return target.showsStandIn ? "it is not marked as the target of one" : nil
    }
    // Whoever names another VFS wants a plain file.
    let isOurs = unsafe vfs == sqlite3_vfs_find(SealedVFS.name)
    return isOurs ? "it has no key, and would hold this database in clear" : nil
  }
}
