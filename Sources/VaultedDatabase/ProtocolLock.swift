internal import FileLayer
internal import SystemPackage

/// The flock(2) that protects changes of a database together with the vault that keeps its key.
enum ProtocolLock {
  /// How long a protocol waits for another to finish before it throws `busy`.
  static let busyTimeout = Duration.seconds(5)

  /// How long a change of key waits for the connections that are open.
  static let connectionBusyTimeout = Duration.seconds(1)

  /// Takes the lock, which the caller must release on every path.
  static func take(
    _ path: FilePath, in fileSystem: any FileSystem
  ) throws(VaultedDatabaseError) -> FileLock {
    do throws(FileError) {
      try fileSystem.makeLockFile(path)
      if let lock = try fileSystem.lock(path, busyTimeout: busyTimeout) { return lock }
    } catch {
      throw VaultedDatabaseError(any: error)
    }
    throw VaultedDatabaseError(
      .busy,
      "another process is opening or changing a database in \(path.containingDirectory)",
      hint: "try again when it has finished")
  }
}
