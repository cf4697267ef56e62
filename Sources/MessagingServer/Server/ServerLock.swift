package import FileLayer
internal import SystemPackage
package import VaultedDatabase

/// What one server of a home holds: presence and live events are in its memory.
package enum ServerLock {
  /// Takes it, without a wait, until it is released.
  ///
  /// - Throws: ``ServerError``, `alreadyRunning`; the errors of the disk.
  package static func take(of home: DataVaultHome) async throws -> FileLock {
    let path = FilePath(home.databasePath.string + "-server")
    let lock = try await onBlockingThread("datavault.server-lock") {
      try home.makeDirectoryUnlessStoreDoes()
      try home.fileSystem.makeLockFile(path)
      return try home.fileSystem.lock(path, wait: false)
    }
    guard let lock else {
      throw ServerError(
        .alreadyRunning, "a server runs on \(home.path)",
        hint: "stop it first, or use another home")
    }
    return lock
  }
}
