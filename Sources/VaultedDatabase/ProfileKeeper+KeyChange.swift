internal import DataVault
internal import FileLayer
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

extension ProfileKeeper {
  func change(
    to key: borrowing SecretBytes, progress: (PageProgress) -> Void
  ) async throws(VaultedDatabaseError) {
    do {
      try Self.check(key)
      let lock = try takeLock()
      defer { lock.release() }
      guard try header() != nil else {
        throw VaultedDatabaseError(
          .databaseMissing, "there is no database at \(path)",
          hint: "a change of key needs one; set the first key with setEncryptionKey")
      }
      let wasInterrupted = try await self.keys().hasPending()
      try await settle()
      let keys = try await keys()
      // The same change, repeated after a crash, has just been finished.
      if wasInterrupted, SecretBytes.isEqual(keys.current, key) { return }
      let database = try exclusiveConnection(keys.current, ProtocolLock.connectionPatience)
      // The copy before the vault's write: a damaged page or a full disk ends it here.
      try database.writeCopy(under: key, fileSystem: fileSystem, progress: progress)
      do {
        try await store(ProfileKeys(current: keys.current.copy(), pending: key.copy()))
      } catch {
        database.discardCopy(fileSystem: fileSystem)
        throw error
      }
      try database.putCopyInPlace(fileSystem: fileSystem)
      try await store(ProfileKeys(current: key.copy()))
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Finishes a change of key that was interrupted after the vault had stored the new one.
  ///
  /// - Throws: where the old key still opens the database, a `SealedFileError` that
  ///   `leavesOldKeyUsable`.
  func settle() async throws {
    let keys = try await keys()
    guard keys.hasPending(), let header = try header() else { return }
    if keys.pendingFits(header) {
      // The rename may not be durable yet, and the key of the file before it is about to go.
      try fileSystem.synchronizeDirectory(path.containingDirectory)
    } else {
      guard header.matches(key: keys.current) else { throw foreignDatabase }
      let database = try exclusiveConnection(keys.current, .zero)
      try database.reencrypt(to: try await self.keys().promoted().current, fileSystem: fileSystem)
    }
    try await store(keys.promoted())
  }

  private func exclusiveConnection(
    _ key: borrowing SecretBytes, _ patience: Duration
  ) throws -> ExclusiveConnection {
    guard try header()?.matches(key: key) == true else { throw foreignDatabase }
    return try ExclusiveConnection(to: path, key: key, over: baseVFS, patience: patience)
  }
}
