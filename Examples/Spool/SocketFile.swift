internal import Glibc

/// The file of a Unix socket, recognised by its inode even if another file takes its name.
struct SocketFile {
  private let path: String
  private let device: dev_t
  private let number: ino_t

  /// Finds the socket; nil if the file is missing or of another kind.
  ///
  /// Such a file must not be removed.
  init?(_ path: String) {
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
    self.path = path
    (device, number) = (status.st_dev, status.st_ino)
  }

  /// Removes the socket, unless another file has taken its name.
  func remove() {
    if let found = SocketFile(path), found.device == device, found.number == number {
      unsafe unlink(path)
    }
  }
}
