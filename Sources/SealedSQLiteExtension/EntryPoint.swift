public import CSQLite
internal import SealedVFS

/// What SQLite calls when it loads `libsealedsqlite.so`; the name follows from that of the file:
/// <https://sqlite.org/loadext.html>.
///
/// The sealed VFS becomes the process's default and stays when the connection closes. It takes keys
/// that a URI names, and every connection gets the functions of ``SQLFunctions``.
@_cdecl("sqlite3_sealedsqlite_init")
public func initialize(
  _ connection: OpaquePointer?, _ message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ routines: UnsafePointer<sqlite3_api_routines>?
) -> Int32 {
  if let difference = unsafe LoadingLibrary.difference(routines) {
    unsafe message?.pointee = sqliteCopy(of: difference)
    return SQLITE_ERROR
  }
  do throws(SealedFileError) {
    try SealedVFS.install()
  } catch {
    unsafe message?.pointee = sqliteCopy(of: error.description)
    return SQLITE_ERROR
  }
  SealedVFS.allowKeyFilesInURIs()
  let result = unsafe SQLFunctions.addToEveryConnection(after: connection)
  guard result == SQLITE_OK else { return result }
  unsafe LoadingConnection.keepTemporaryDataInMemory(connection)
  let okLoadPermanently = SQLITE_OK | (1 << 8)  // a macro that Swift does not import
  return okLoadPermanently
}

/// A string in memory that SQLite frees.
func sqliteCopy(of text: String) -> UnsafeMutablePointer<CChar>? {
  let text = text.utf8CString
  guard let copy = unsafe sqlite3_malloc(Int32(text.count)) else { return nil }
  let target = unsafe copy.bindMemory(to: CChar.self, capacity: text.count)
  for (index, byte) in text.enumerated() { unsafe target[index] = byte }
  return unsafe target
}
