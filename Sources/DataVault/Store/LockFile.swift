package import FileLayer
package import SystemPackage

/// A permanent file that serves as a lock among all objects and processes.
package struct LockFile: Sendable {
  /// The time that a caller waits to change a vault.
  ///
  /// A change takes milliseconds; one with a derivation or with many megabytes takes a second.
  package static let busyTimeout = Duration.seconds(10)
  /// The time that a caller waits to attempt to open a vault.
  ///
  /// Others can be waiting before it, each with a derivation. A derivation of ten million
  /// iterations takes seconds.
  package static let attemptBusyTimeout = Duration.seconds(30)

  let path: FilePath
  let fileSystem: any FileSystem

  package init(_ path: FilePath, in fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  /// Takes the lock.
  ///
  /// - Parameter activity: what the holder of the lock is doing, for the error.
  /// - Throws: `busy`, `writeFailed`.
  package func lock(
    for activity: String, busyTimeout: Duration
  ) throws(VaultError) -> VaultStoreLock {
    let lock = try converting(VaultError.writeFailed) { () throws(FileError) in
      try fileSystem.makeLockFile(path)
      return try fileSystem.lock(path, busyTimeout: busyTimeout)
    }
    guard let lock else { throw .busy(activity, lock: path, after: busyTimeout) }
    return VaultStoreLock { lock.release() }
  }

  /// Checks whether an existing file can be locked; does not wait and creates nothing.
  ///
  /// - Throws: as ``lock(for:busyTimeout:)``, but for `busy` and for a file system that is read-only, which says
  ///   nothing about the file.
  package func check() throws(VaultError) {
    do throws(FileError) {
      guard try fileSystem.status(of: path) != nil else { return }
      try fileSystem.lock(path, wait: false)?.release()
    } catch {
      guard error.errno != .readOnlyFileSystem else { return }
      throw .writeFailed(error)
    }
  }
}
