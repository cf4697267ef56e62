internal import CSQLite

/// The SQLite library that loads this extension.
enum LoadingLibrary {
  /// Why the library that loads us is not the one we are linked to; nil when it is.
  ///
  /// A VFS registered in another library than the caller's would never be used, and the caller's
  /// database would be written in clear. Two copies of one version are told apart too: the text
  /// lies at one address in each.
  static func difference(_ routines: UnsafePointer<sqlite3_api_routines>?) -> String? {
    let ours = unsafe sqlite3_sourceid()
    guard let theirs = unsafe routines?.pointee.sourceid?() else {
      return "sealedsqlite: this program's SQLite does not say which it is"
    }
    if unsafe theirs == ours { return nil }
    let dates = unsafe (date(theirs), ours.map { unsafe date($0) } ?? "unknown")
    return
      "sealedsqlite: this program has an SQLite of its own (\(dates.0)), and the extension works "
      + "with the system's (\(dates.1)): use a program that is linked to libsqlite3.so.0"
  }

  private static func date(_ sourceID: UnsafePointer<CChar>) -> String {
    unsafe String(String(cString: sourceID).prefix(10))
  }
}
