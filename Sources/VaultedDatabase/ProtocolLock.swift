internal import FileLayer
internal import SystemPackage

/// The flock(2) that protects changes of a database together with the vault that keeps its key.
enum ProtocolLock {
  /// How long a protocol waits for another to finish before it throws `busy`.
  static let busyTimeout = Duration.seconds(5)

  /// How long a change of key waits for the connections that are open.
  static let connectionBusyTimeout = Duration.seconds(1)

  /// Takes the lock, runs a protocol and releases the lock on every path; blocks the executor of the caller.
  nonisolated(nonsending) static func hold<Result>(
    _ path: FilePath, in fileSystem: any FileSystem,
    _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws(VaultedDatabaseError) -> Result {
    do {
      try fileSystem.makeLockFile(path)
      guard let lock = try fileSystem.lock(path, busyTimeout: busyTimeout) else {
        throw VaultedDatabaseError(
          .busy,
          "another process is opening or changing a database in \(path.containingDirectory)",
          hint: "try again when it has finished")
      }
      defer { lock.release() }
      return try await body()
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }
}
