internal import Glibc

/// SQLite's index of the log, `NAME-shm`.
enum SharedMemoryFile {
  /// Lets the owner of a database write its index where they may write the database.
  ///
  /// SQLite makes it with the permissions that the database has at that moment, takes it as it finds it
  /// later, and does not remove it as long as it cannot be written: a database that was read by itself
  /// while it was read-only (`chmod 400`) would stay so. By name, because closing a descriptor of the file
  /// would end the locks that this process has on it.
  ///
  /// - Parameter path: of the database.
  static func openToOwner(of path: UnsafePointer<CChar>) {
    var database = stat()
    var index = stat()
    let name = unsafe String(cString: path) + "-shm"
    guard unsafe lstat(name, &index) == 0, index.st_mode & S_IFMT == S_IFREG,
      index.st_uid == geteuid(), index.st_mode & S_IRWXU != S_IRUSR | S_IWUSR,
      unsafe stat(path, &database) == 0, database.st_uid == index.st_uid,
      database.st_mode & (S_IRUSR | S_IWUSR) == S_IRUSR | S_IWUSR
    else { return }
    unsafe chmod(name, index.st_mode & 0o777 | S_IRUSR | S_IWUSR)
  }
}
