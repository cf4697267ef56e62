package import FileLayer
internal import Glibc
package import SystemPackage

/// Notifies through an empty file beside the database, which is opened for writing and closed.
///
/// Nothing is written, so a notification costs no sync and no space, works on a full disk and
/// reveals nothing. inotify(7) reports the close, `IN_CLOSE_WRITE`, to every process that watches.
/// Watching the write-ahead log is not enough: it is written before the commit is visible, and the
/// sync that makes the commit durable raises no event.
///
/// Each notification looks the file up by its name. If the file is missing, it is created with the
/// mode and the owner of the database. So everyone who can write the database can also notify.
package struct NotificationFile: NotificationTransport {
  private let path: FilePath
  private let database: FilePath

  /// The file of the database at `path`: the same name with `-notify` appended.
  package init(besideDatabase path: FilePath) {
    database = path
    self.path = FilePath(path.string + "-notify")
  }

  package func notify() throws(FileError) {
    let descriptor = try open()
    // Closing the file raises the event.
    _ = close(descriptor.rawValue)
  }

  package func listen() throws(FileError) -> any NotificationListener {
    try notify()
    return try InotifyListener(path)
  }

  private func open() throws(FileError) -> FileDescriptor {
    do throws(FileError) {
      return try OwnFile.open(path, .notification, for: .write)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return try create()
    }
  }

  private func create() throws(FileError) -> FileDescriptor {
    do throws(FileError) {
      let created = try OwnFile.create(path, permissions: .ownerReadWrite)
      // Only for a file that this call created: the file of another user must keep its owner.
      copyOwnerAndMode(to: created.rawValue)
      return created
    } catch  where error.errno == .fileExists {
      // Another process created it since the first try.
      return try OwnFile.open(path, .notification, for: .write)
    }
  }

  /// Gives the file the owner and mode of the database.
  ///
  /// Otherwise a daemon could not open a file that root created.
  private func copyOwnerAndMode(to descriptor: CInt) {
    var status = stat()
    guard unsafe lstat(database.string, &status) == 0 else { return }
    if geteuid() == 0 { _ = fchown(descriptor, status.st_uid, status.st_gid) }
    _ = fchmod(descriptor, status.st_mode & 0o666)
  }
}
