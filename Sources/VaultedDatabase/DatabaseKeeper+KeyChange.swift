internal import DataVault
internal import SealedVFS
internal import VaultCrypto

extension DatabaseKeeper {
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
    if keys.pendingFits(header) { return try await vault.promotePendingKey() }
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
    } catch let error as SealedFileError
      where [.busy, .damagedPage, .truncated, .diskFull, .readOnly].contains(error.code)
    {
      // The current key still opens it, and reading what is whole comes first: somebody uses it, or
      // it cannot be copied as it is. The next opening tries again.
    }
  }

  /// Seals the database under the vault's pending key, then promotes that.
  func moveToPendingKey(_ database: ExclusiveConnection, of vault: Vault) async throws {
    if let pending = try await vault.databaseKeys().takePending() {
      try database.reencrypt(to: pending, fileSystem: home.fileSystem)
    }
    try await vault.promotePendingKey()
  }
}
