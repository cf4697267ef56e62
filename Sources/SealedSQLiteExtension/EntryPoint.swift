public import CSQLite
internal import SealedVFS

/// The entry point that SQLite calls when it loads `libsealedsqlite.so`.
///
/// Its name follows from the name of the file: <https://sqlite.org/loadext.html>. The sealed VFS
/// becomes the process's default, and stays after the connection closes. It accepts URIs that name
/// a key file. Every connection gets the functions of ``SQLFunctions``.
@_cdecl("sqlite3_sealedsqlite_init")
public func initialize(
  _ connection: OpaquePointer?, _ message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ routines: UnsafePointer<sqlite3_api_routines>?
) -> Int32 {
  if let difference = unsafe differenceOfLibraries(routines) {
    unsafe message?.pointee = sqliteCopy(of: difference)
    return SQLITE_ERROR
  }
  do throws(SealedDatabaseError) {
    try SealedVFS.install()
  } catch {
    unsafe message?.pointee = sqliteCopy(of: error.description)
    return SQLITE_ERROR
  }
  SealedVFS.allowKeyFilesInURIs()
  let result = unsafe SQLFunctions.addToEveryConnection(after: connection)
  guard result == SQLITE_OK else { return result }
  unsafe keepTemporaryDataInMemory(connection)
  return SQLITE_OK | (1 << 8)  // SQLITE_OK_LOAD_PERMANENTLY, a macro that Swift does not import
}

/// A string in memory that SQLite frees.
func sqliteCopy(of text: String) -> UnsafeMutablePointer<CChar>? {
  let text = text.utf8CString
  guard let copy = unsafe sqlite3_malloc(Int32(text.count)) else { return nil }
  let target = unsafe copy.bindMemory(to: CChar.self, capacity: text.count)
  for (index, byte) in text.enumerated() { unsafe target[index] = byte }
  return unsafe target
}

/// Keeps the sorts and temporary tables of the loading connection off the disk.
///
/// It was opened before, on another VFS. It can attach a sealed database, and its temporary files
/// do not use the sealed VFS. SQLite drops existing temporary tables when this setting changes. A
/// connection that has some keeps them and its setting.
private func keepTemporaryDataInMemory(_ connection: OpaquePointer?) {
  guard unsafe !hasTemporaryTables(connection) else { return }
  _ = unsafe sqlite3_exec(connection, "PRAGMA temp_store = MEMORY", nil, nil, nil)
}

private func hasTemporaryTables(_ connection: OpaquePointer?) -> Bool {
  var statement: OpaquePointer?
  defer { unsafe sqlite3_finalize(statement) }
  let query = "SELECT 1 FROM sqlite_temp_schema LIMIT 1"
  guard unsafe sqlite3_prepare_v2(connection, query, -1, &statement, nil) == SQLITE_OK else {
    return true
  }
  return unsafe sqlite3_step(statement) != SQLITE_DONE
}

/// The difference between the loading SQLite library and the one we are linked to; nil if they are
/// the same.
///
/// A VFS registered in another library would never be used, and the program would write its
/// database in the clear. The addresses are compared, not the texts, because two copies of one
/// version have the same text.
private func differenceOfLibraries(
  _ routines: UnsafePointer<sqlite3_api_routines>?
) -> String? {
  let ours = unsafe sqlite3_sourceid()
  guard let theirs = unsafe routines?.pointee.sourceid?() else {
    return "sealedsqlite: this program's SQLite does not state its version"
  }
  if unsafe theirs == ours { return nil }
  let dates = unsafe (date(theirs), ours.map { unsafe date($0) } ?? "unknown")
  return
    "sealedsqlite: this program has an SQLite of its own (\(dates.0)), but the extension needs "
    + "the system's (\(dates.1)): use a program that is linked to libsqlite3.so.0"
}

private func date(_ sourceID: UnsafePointer<CChar>) -> String {
  unsafe String(String(cString: sourceID).prefix(10))
}
