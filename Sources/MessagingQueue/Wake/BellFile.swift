internal import Glibc
package import SystemPackage

/// A bell beside the database: an empty file that is rung by being opened for writing and closed.
///
/// Nothing is written, so that ringing costs no sync and no space, works on a full disk and tells
/// nobody anything. inotify(7) reports the closing, `IN_CLOSE_WRITE`, to every process that watches.
/// The write-ahead log cannot serve: it is written before the commit is visible, and the sync that
/// makes it so raises no event.
///
/// The file is looked up by its name at each ring, and made where it is missing, with the mode and
/// the owner of the database: whoever may write the one may ring the other.
package struct BellFile: BellDevice {
  private let path: FilePath
  private let database: FilePath

  /// The bell of the database at `path`: the same name with `-bell` behind it.
  package init(besideDatabase path: FilePath) {
    database = path
    self.path = FilePath(path.string + "-bell")
  }

  package func ring() throws(BellError) {
    let descriptor = try open()
    // The event is the closing.
    _ = close(descriptor)
  }

  package func listen() throws(BellError) -> any BellListener {
    try ring()
    return try InotifyListener(path)
  }

  private func open() throws(BellError) -> CInt {
    // A pipe or a device put in its place must not block, nor a link lead elsewhere.
    let flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    let descriptor = unsafe Glibc.open(path.string, flags)
    if descriptor >= 0 { return descriptor }
    guard errno == ENOENT else { throw BellError("cannot open \(path): \(Errno(rawValue: errno))") }
    let created = unsafe Glibc.open(path.string, flags | O_CREAT, S_IRUSR | S_IWUSR)
    guard created >= 0 else { throw BellError("cannot create \(path): \(Errno(rawValue: errno))") }
    resembleDatabase(created)
    return created
  }

  /// A bell that root made must not shut out the daemon that the database belongs to.
  private func resembleDatabase(_ descriptor: CInt) {
    var status = stat()
    guard unsafe lstat(database.string, &status) == 0 else { return }
    if geteuid() == 0 { _ = fchown(descriptor, status.st_uid, status.st_gid) }
    _ = fchmod(descriptor, status.st_mode & 0o666)
  }
}
