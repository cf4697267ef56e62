internal import FileLayer
internal import Glibc
internal import SystemPackage

/// An allocated file beside the database: space that a full disk gives back to what empties the queue.
///
/// Other databases call it a ballast file. Publishing never uses it. Its content means nothing.
package final class DiskReserve: Sendable {
  private let databasePath: FilePath
  let path: FilePath
  let byteCount: Int
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
    guard byteCount > 0, size(of: path) < byteCount, freeByteCount >= neededByteCount else {
      return
    }
    let isNew = (try? fileSystem.status(of: path)) == nil
    // A file that root owned could not be released by a daemon.
    try? fileSystem.makeLockFile(path)
    guard
      let file = opened() ?? (try? OwnFile.create(path, permissions: .ownerReadWrite))
    else { return }
    defer { try? file.close() }
    guard !allocate(file) else { return }
    if isNew { try? fileSystem.remove(path) } else { _ = ftruncate(file.rawValue, 0) }
  }

  private func allocate(_ file: FileDescriptor) -> Bool {
    var result: CInt
    repeat { result = posix_fallocate(file.rawValue, 0, byteCount) } while result == EINTR
    return result == 0
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

  /// Whether the file has space to give back.
  var isMade: Bool { size(of: path) > 0 }

  /// Whether the file is there and has no space any more.
  var wasReleased: Bool {
    (try? fileSystem.status(of: path)).map { $0.kind == .regular && $0.byteCount == 0 } ?? false
  }

  /// The free space from which ``make()`` allocates the file.
  var neededByteCount: Int { 4 * byteCount }

  /// The free space of the disk.
  var freeByteCount: Int { DatabaseSize.freeDiskByteCount(at: path.removingLastComponent()) }

  private func size(of path: FilePath) -> Int {
    guard let status = try? fileSystem.status(of: path), status.kind == .regular else { return 0 }
    return Int(status.byteCount)
  }
}
