internal import DataVault
internal import FileLayer
internal import SealedVFS
internal import VaultCrypto

extension DatabaseKeeper {
  func changeKey(
    of vault: Vault, progress: (PageProgress) -> Void
  ) async throws(VaultedDatabaseError) {
    do {
      let lock = try takeLock()
      defer { lock.release() }
      guard try await vault.binding() != nil else {
        let database = try lookAtDatabase()
        throw VaultedDatabaseError.refusal(
          database == .absent ? .databaseMissing : .foreignDatabase, of: home)
      }
      try await settle(vault)
      let keys = try await vault.databaseKeys()
      let database = try exclusiveConnection(key: keys.current)
      guard !keys.hasPending() else {
        // An earlier change that could not be finished: finishing it is what is asked for.
        return try await moveToPendingKey(database, of: vault, progress: progress)
      }
      let pending = SecretBytes.random(byteCount: 32, from: home.vaultParameters.random)
      // The copy before the vault's write: a damaged page or a full disk ends it here.
      try database.writeCopy(under: pending, fileSystem: home.fileSystem, progress: progress)
      do {
        try await vault.storePendingKey(pending)
      } catch {
        database.discardCopy(fileSystem: home.fileSystem)
        throw error
      }
      try database.putCopyInPlace(fileSystem: home.fileSystem)
      try await vault.promotePendingKey()
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Keeps everyone else out before anything is decided: whoever has the database open is told of
  /// with nothing changed.
  func exclusiveConnection(key: borrowing SecretBytes) throws -> ExclusiveConnection {
    try ExclusiveConnection(
      to: home.databasePath, key: key, over: home.baseVFS,
      patience: ProtocolLock.connectionPatience)
  }

  /// Finishes a change of key that a crash interrupted: the database's key check tells which of
  /// the two keys it is under.
  func settleKeys(of vault: Vault) async throws {
    let keys = try await vault.databaseKeys()
    guard
      case .sealed(let header) = try SealedVFS.inspect(
        home.databasePath, over: home.baseVFS)
    else {
      throw VaultedDatabaseError.refusal(.damaged, of: home)
    }
    if keys.pendingFits(header) {
      // The rename may not be durable yet, and the key of the file before it is about to go.
      try home.fileSystem.synchronizeDirectory(home.path)
      return try await vault.promotePendingKey()
    }
    guard header.matches(key: keys.current) else {
      throw VaultedDatabaseError(
        .damaged, "no key of the vault opens \(home.databasePath), although it names this database",
        hint: "restore vault and database together from one backup")
    }
    guard keys.hasPending() else { return }
    do {
      let exclusive = try ExclusiveConnection(
        to: home.databasePath, key: keys.current, over: home.baseVFS)
      try await moveToPendingKey(exclusive, of: vault)
    } catch let error as SealedFileError where error.leavesOldKeyUsable {
      // The current key still opens it, and reading what is whole comes first. The next opening
      // tries again.
    }
  }

  /// Seals the database under the vault's pending key, then promotes that.
  private func moveToPendingKey(
    _ database: ExclusiveConnection, of vault: Vault, progress: (PageProgress) -> Void = { _ in }
  ) async throws {
    if let pending = try await vault.databaseKeys().takePending() {
      try database.reencrypt(to: pending, fileSystem: home.fileSystem, progress: progress)
    }
    try await vault.promotePendingKey()
  }
}

extension SealedFileError {
  /// Whether a change of key that ends so can wait: somebody uses the database, or it cannot be
  /// copied as it is.
  var leavesOldKeyUsable: Bool {
    [.busy, .damagedPage, .truncated, .diskFull, .readOnly].contains(code)
  }
}
