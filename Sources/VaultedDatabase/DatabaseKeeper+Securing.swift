internal import DataVault
internal import FileLayer
internal import SealedVFS
internal import VaultCrypto

extension DatabaseKeeper {
  func secure(with credentials: borrowing Credentials) async throws(VaultedDatabaseError) {
    do {
      try home.store.prepare()
      let lock = try takeLock()
      defer { lock.release() }
      guard try await Vault.exists(.messaging, in: home.store) else {
        return try await makeSecuredVault(with: credentials)
      }
      let vault = try await Vault.get(
        .messaging, in: home.store, parameters: home.vaultParameters)
      try await unlockWithStandardCredentials(vault)
      try await secure(vault, with: credentials)
      await vault.lock()
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// First use of the home: there is nothing to re-encrypt, and never was a public password.
  private func makeSecuredVault(with credentials: borrowing Credentials) async throws {
    guard try lookAtDatabase() == .absent else {
      throw VaultedDatabaseError.refusal(.keyMissing, of: home)
    }
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials, parameters: home.vaultParameters)
    await vault.lock()
  }

  private func unlockWithStandardCredentials(_ vault: Vault) async throws {
    do {
      guard try await !vault.status().isSecured else { throw Self.alreadySecured }
      // Also where the policy has come to forbid the standard credentials: this is the way out.
      try await vault.unlockToChangePassword(with: .password(.standard))
    } catch let error as VaultError where error.code == .wrongPassword {
      throw Self.alreadySecured
    }
  }

  private func secure(_ vault: Vault, with credentials: borrowing Credentials) async throws {
    if try await vault.binding() == nil {
      guard try lookAtDatabase() == .absent else {
        throw VaultedDatabaseError.refusal(.foreignDatabase, of: home)
      }
      return try await vault.secure(to: credentials)
    }
    try await settle(vault)
    let keys = try await vault.databaseKeys()
    let database = try exclusiveConnection(key: keys.current)
    let pending = SecretBytes.random(byteCount: 32, from: home.vaultParameters.random)
    // The copy before the vault's write: a damaged page or a full disk ends it here.
    try database.writeCopy(under: pending, fileSystem: home.fileSystem)
    do {
      try await vault.secure(to: credentials, pendingKey: pending.copy())
    } catch {
      database.discardCopy(fileSystem: home.fileSystem)
      throw error
    }
    try database.putCopyInPlace(fileSystem: home.fileSystem)
    try await vault.promotePendingKey()
  }

  private static var alreadySecured: VaultedDatabaseError {
    VaultedDatabaseError(
      .alreadySecured, "the messaging vault is secured already",
      hint: "change its password with: datavault change-password messaging")
  }
}
