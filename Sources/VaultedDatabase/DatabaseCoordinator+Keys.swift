package import DataVault
internal import FileLayer
internal import GRDB
package import SealedVFS
internal import VaultCrypto

extension DatabaseCoordinator {
  /// Secures vault and database, as ``VaultedDatabase/secure(_:with:)`` does.
  ///
  /// - Parameters:
  ///   - anchorStorage: nil for a caller who cannot ask the database for its anchors.
  ///   - progress: called with the pages sealed, after each mebibyte and at the end.
  /// - Throws: `rolledBack` if the database lacks the anchor of its vault; neither file is changed.
  package func secure(
    with credentials: borrowing Credentials, anchorStorage: (any AnchorStorage)? = nil,
    progress: @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    do throws(VaultError) {
      try home.store.prepare()
    } catch {
      throw VaultedDatabaseError(any: error)
    }
    try await locked {
      guard try await Vault.exists(.messaging, in: home.store) else {
        return try await makeSecuredVault(with: credentials)
      }
      let vault = try await Vault.get(
        .messaging, in: home.store, parameters: home.vaultParameters)
      try await unlockWithStandardCredentials(vault)
      try await secure(
        vault, with: credentials, anchorStorage: anchorStorage, progress: progress)
      await vault.lock()
    }
  }

  /// Makes the vault on the first use of a home: there is nothing to re-encrypt.
  private func makeSecuredVault(with credentials: borrowing Credentials) async throws {
    guard try inspectDatabase() == .absent else {
      throw VaultedDatabaseError.refusal(.keyMissing, home.databasePath)
    }
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials, parameters: home.vaultParameters)
    await vault.lock()
  }

  private func unlockWithStandardCredentials(_ vault: Vault) async throws {
    do {
      guard try await !vault.status().isSecured else { throw Self.alreadySecured }
      // Allowed even if the policy now forbids the standard credentials: securing must stay
      // possible.
      try await vault.unlockToChangePassword(with: .password(.standard))
    } catch let error as VaultError where error.code == .wrongPassword {
      throw Self.alreadySecured
    }
  }

  private func secure(
    _ vault: Vault, with credentials: borrowing Credentials, anchorStorage: (any AnchorStorage)?,
    progress: (PageProgress) -> Void
  ) async throws {
    if try await vault.binding() == nil {
      guard try inspectDatabase() == .absent else {
        throw VaultedDatabaseError.refusal(.databaseMismatch, home.databasePath)
      }
      return try await vault.secure(to: credentials)
    }
    try await settle(vault, anchorStorage: anchorStorage)
    try await requireNothingIsLost(of: vault, in: anchorStorage)
    let keys = try await vault.databaseKeys()
    let database = try exclusiveConnection(key: keys.current)
    let pending = SecretBytes.random(byteCount: 32, from: home.vaultParameters.random)
    try await database.changeKey(to: pending, fileSystem: home.fileSystem, progress: progress) {
      try await vault.secure(to: credentials, pendingKey: pending.copy())
    }
    try await vault.promotePendingKey()
  }

  private static var alreadySecured: VaultedDatabaseError {
    VaultedDatabaseError(
      .alreadySecured, "the messaging vault is already secured",
      hint: "change its password with: datavault change-password messaging")
  }
}

extension DatabaseCoordinator {
  /// Changes the database's key, as ``VaultedDatabase/changeKey(of:vault:progress:)`` does.
  ///
  /// - Parameter anchorStorage: nil for a caller who cannot ask the database for its anchors.
  /// - Throws: `rolledBack` if the database lacks the anchor of its vault; neither file is changed.
  package func changeKey(
    of vault: Vault, anchorStorage: (any AnchorStorage)? = nil,
    progress: @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    try await locked {
      guard try await vault.binding() != nil else {
        let database = try inspectDatabase()
        throw database == .absent
          ? VaultedDatabaseError.notCreated(home.databasePath)
          : VaultedDatabaseError.refusal(.databaseMismatch, home.databasePath)
      }
      try await settle(vault, anchorStorage: anchorStorage)
      try await requireNothingIsLost(of: vault, in: anchorStorage)
      let keys = try await vault.databaseKeys()
      let database = try exclusiveConnection(key: keys.current)
      guard !keys.hasPending() else {
        // An earlier change was interrupted: this call finishes it.
        return try await moveToPendingKey(database, of: vault, progress: progress)
      }
      let pending = SecretBytes.random(byteCount: 32, from: home.vaultParameters.random)
      try await database.changeKey(to: pending, fileSystem: home.fileSystem, progress: progress) {
        try await vault.storePendingKey(pending)
      }
      try await vault.promotePendingKey()
    }
  }

  /// Locks out every other connection before anything is changed; throws `busy` if there is one.
  func exclusiveConnection(key: borrowing SecretBytes) throws -> ExclusiveConnection {
    try ExclusiveConnection(
      to: home.databasePath, key: key, over: home.baseVFS,
      busyTimeout: ProtocolLock.connectionBusyTimeout)
  }

  /// Finishes a change of key that a crash interrupted; the database's key check shows which key it
  /// is under.
  func settleKeys(of vault: Vault, anchorStorage: (any AnchorStorage)?) async throws {
    let keys = try await vault.databaseKeys()
    guard
      case .sealed(let header) = try SealedVFS.inspect(
        home.databasePath, over: home.baseVFS)
    else {
      throw VaultedDatabaseError.refusal(.damaged, home.databasePath)
    }
    if try keys.pendingFits(header) {
      // The rename is possibly not durable yet, and the old file's key is deleted next.
      try home.fileSystem.synchronizeDirectory(home.path)
      return try await vault.promotePendingKey()
    }
    guard try header.matches(key: keys.current) else {
      throw VaultedDatabaseError.noKeyFits(home.databasePath)
    }
    guard keys.hasPending() else { return }
    try await requireAnchor(of: vault, in: anchorStorage, busyMode: Self.connectionBusyMode)
    do {
      let exclusive = try ExclusiveConnection(
        to: home.databasePath, key: keys.current, over: home.baseVFS)
      try await moveToPendingKey(exclusive, of: vault)
    } catch let error as SealedDatabaseError where error.leavesOldKeyUsable {
      // The current key still opens the database, and reading is more important. The next opening
      // tries again.
    }
  }

  /// Seals the database under the vault's pending key, then promotes the key.
  private func moveToPendingKey(
    _ database: ExclusiveConnection, of vault: Vault, progress: (PageProgress) -> Void = { _ in }
  ) async throws {
    if let pending = try await vault.databaseKeys().takePending() {
      try database.reencrypt(to: pending, fileSystem: home.fileSystem, progress: progress)
    }
    try await vault.promotePendingKey()
  }
}

extension ExclusiveConnection {
  /// Seals the database under a new key, which `store` puts into the vault after the copy is written and before it
  /// replaces the database.
  ///
  /// The copy comes before the vault's write: a damaged page or a full disk ends the call there. If `store` throws,
  /// the copy is removed.
  func changeKey(
    to key: borrowing SecretBytes, fileSystem: any FileSystem,
    progress: (PageProgress) -> Void = { _ in }, storing store: () async throws -> Void
  ) async throws {
    try writeCopy(under: key, fileSystem: fileSystem, progress: progress)
    do {
      try await store()
    } catch {
      discardCopy(fileSystem: fileSystem)
      throw error
    }
    try putCopyInPlace(fileSystem: fileSystem)
  }
}
