internal import FileLayer
internal import Glibc
internal import SystemPackage

/// An allocated file beside the database: space that a full disk gives back to what empties the queue.
///
/// Publishing never uses it. Its content means nothing.
package final class DiskReserve: Sendable {
  private let databasePath: FilePath
  private let path: FilePath
  private let byteCount: Int
  private let fileSystem: any FileSystem

  init(besideDatabase path: FilePath, byteCount: Int, in fileSystem: any FileSystem) {
    databasePath = path
    self.path = FilePath(path.string + "-reserve")
    self.byteCount = byteCount
    self.fileSystem = fileSystem
  }

  /// Allocates the file if the database is as large as it.
  ///
  /// A small queue has not filled the disk.
  func makeForLargeDatabase() {
    guard size(of: databasePath) >= byteCount else { return }
    make()
  }

  /// Allocates the file, if the disk then still has three times its size.
  func make() {
    guard byteCount > 0, size(of: path) < byteCount, freeByteCount >= 4 * byteCount else { return }
    // A file that root owned could not be released by a daemon.
    try? fileSystem.makeLockFile(path)
    guard
      let file = opened() ?? (try? OwnFile.create(path, permissions: .ownerReadWrite))
    else { return }
    defer { try? file.close() }
    if posix_fallocate(file.rawValue, 0, byteCount) != 0 { _ = ftruncate(file.rawValue, 0) }
  }

  /// Gives the space back to the file system.
  ///
  /// - Returns: whether there was some.
  func release() -> Bool {
    guard size(of: path) > 0 else { return false }
    guard let file = opened() else { return false }
    defer { try? file.close() }
    return ftruncate(file.rawValue, 0) == 0
  }

  private func opened() -> FileDescriptor? {
    try? OwnFile.open(path, .lock(owner: nil), for: .write)
  }

  private func size(of path: FilePath) -> Int {
    guard let status = try? fileSystem.status(of: path), status.kind == .regular else { return 0 }
    return Int(status.byteCount)
  }

  private var freeByteCount: Int {
    var status = statvfs()
    guard unsafe statvfs(path.removingLastComponent().string, &status) == 0 else { return 0 }
    return Int(status.f_bavail) * Int(status.f_frsize)
  }
}
