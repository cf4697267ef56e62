internal import CSQLite
internal import FileLayer
internal import SystemPackage

/// The names around a database, on the VFS beneath.
@safe struct ImageFiles {
  let path: String
  private let vfs: UnsafeMutablePointer<sqlite3_vfs>

  init(path: String, vfs: UnsafeMutablePointer<sqlite3_vfs>) {
    self.path = path
    unsafe self.vfs = vfs
  }

  func openDatabase() throws(SealedFileError) -> HeldFile {
    let status: FileStatus?
    do throws(FileError) {
      status = try LinuxFileSystem().status(of: FilePath(path))
    } catch {
      throw SealedFileError(.ioFailed, path: path, detail: "\(error.errno)")
    }
    if let status, status.kind != .regular { throw SealedFileError(.notSealed, path: path) }
    guard let file = unsafe try HeldFile(path, kind: SQLITE_OPEN_MAIN_DB, over: vfs)
    else { throw SealedFileError(.absent, path: path) }
    return file
  }

  func open(_ suffix: String, _ kind: Int32) throws(SealedFileError) -> HeldFile? {
    try unsafe HeldFile(path + suffix, kind: kind, over: vfs)
  }

  func hasLog() throws(SealedFileError) -> Bool {
    try open("-wal", SQLITE_OPEN_WAL) != nil
  }
}
