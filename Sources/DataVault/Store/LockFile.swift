package import FileLayer
package import SystemPackage

/// A file that is there to be locked, among all objects and processes, and that stays.
package struct LockFile: Sendable {
  /// How long somebody waits who wants to change a vault: a change takes milliseconds, one with a
  /// derivation or with many megabytes a second.
  package static let patience = Duration.seconds(10)
  /// How long somebody waits who wants to attempt to open a vault: others may be before them, each
  /// with a derivation, and one with ten million iterations takes seconds.
  package static let attemptPatience = Duration.seconds(30)

  let path: FilePath
  let fileSystem: any FileSystem

  package init(_ path: FilePath, in fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  /// Takes the lock.
  ///
  /// - Parameter activity: what its holder is doing, for the error.
  /// - Throws: `busy`, `writeFailed`.
  package func lock(
    for activity: String, patience: Duration
  ) throws(VaultError) -> VaultStoreLock {
    let lock: FileLock?
    do throws(FileError) {
      try fileSystem.makeLockFile(path)
      lock = try fileSystem.lock(path, patience: patience)
    } catch {
      throw .writeFailed(error)
    }
    guard let lock else { throw .busy(activity, lock: path, after: patience) }
    return VaultStoreLock { lock.release() }
  }
}
