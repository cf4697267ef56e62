internal import Glibc

/// The file of a Unix socket, known again when something else has taken its name.
struct SocketFile {
  private let path: String
  private let device: dev_t
  private let number: ino_t

  /// Nil where there is no socket: a file of another kind is nobody's to remove.
  init?(_ path: String) {
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
    self.path = path
    (device, number) = (status.st_dev, status.st_ino)
  }

  /// Removes it, if it is still there.
  func remove() {
    if let found = SocketFile(path), found.device == device, found.number == number {
      unsafe unlink(path)
    }
  }
}
