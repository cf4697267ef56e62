internal import DataVault
internal import FileLayer
internal import GRDB
internal import SealedSQLite
internal import VaultCrypto

extension DatabaseKeeper {
  /// Refuses a database that does not know the anchor of its vault.
  ///
  /// It looks through a connection that cannot write, so that a refusal leaves file and log as they
  /// are: the last connection of a pool would carry the log over as it closes.
  func requireAnchor(
    of vault: Vault, in ledger: any AnchorLedger, busyMode: Database.BusyMode
  ) async throws {
    guard let anchor = try await vault.anchor() else { return }
    let keys = try await vault.databaseKeys()
    var configuration = Configuration()
    configuration.busyMode = busyMode
    let reader = try SealedDatabase.openReader(
      at: home.databasePath, key: keys.current, configuration: configuration, over: home.baseVFS)
    let page = Result { try reader.read { db in try ledger.page(in: db) } }
    try reader.close()
    guard try AnchorPage.page(page.get(), holds: anchor) else {
      throw VaultedDatabaseError.rolledBack(try page.get(), anchor, home)
    }
  }

  /// Commits a new anchor, then stores it in the vault.
  ///
  /// A kill between the two leaves an anchor that nobody asks for.
  func recordAnchor(
    of vault: Vault, in pool: DatabasePool, _ ledger: any AnchorLedger
  ) async throws(VaultedDatabaseError) {
    let lock = try takeLock()
    defer { lock.release() }
    do {
      let stored = try await vault.anchor()
      try await vault.storeAnchor(try add(to: ledger, keeping: stored, in: pool))
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Takes the database as it is for the vault's own from now on.
  ///
  /// - Returns: nil when it was not rolled back; nothing is changed then.
  func acceptRollback(
    of vault: Vault, _ ledger: any AnchorLedger
  ) async throws(VaultedDatabaseError) -> AcceptedRollback? {
    let lock = try takeLock()
    defer { lock.release() }
    do {
      try await settle(vault)
      guard let anchor = try await vault.anchor() else { return nil }
      let keys = try await vault.databaseKeys()
      var configuration = Configuration()
      configuration.busyMode = .timeout(ProtocolLock.patience / .seconds(1))
      let pool = try SealedDatabase.openPool(
        at: home.databasePath, key: keys.current, configuration: configuration, creation: .never,
        over: home.baseVFS)
      defer { try? pool.close() }
      let page = try await pool.read { db in try ledger.page(in: db) }
      if AnchorPage.page(page, holds: anchor) { return nil }
      // First in the database: until the vault has it, the rollback stays refused.
      let accepted = try add(to: ledger, keeping: nil, in: pool)
      try await vault.storeAnchor(accepted, acceptsOlder: true)
      return AcceptedRollback(
        expectedCommitNumber: anchor.commitNumber, foundCommitNumber: page?.commitNumber ?? 0)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  private func add(
    to ledger: any AnchorLedger, keeping stored: DatabaseAnchor?, in pool: DatabasePool
  ) throws -> DatabaseAnchor {
    let id = home.vaultParameters.random.bytes(count: DatabaseAnchor.idByteCount)
    let commitNumber = try pool.writeWithoutTransaction { db in
      try ledger.add(id, keeping: stored, in: db)
    }
    return DatabaseAnchor(id: id, commitNumber: commitNumber)
  }
}

extension VaultedDatabaseError {
  fileprivate static func rolledBack(
    _ page: AnchorPage?, _ anchor: DatabaseAnchor, _ home: DataVaultHome
  ) -> VaultedDatabaseError {
    let found = page?.commitNumber ?? 0
    let state =
      found < anchor.commitNumber
      ? "it ends with commit \(found), the vault has seen commit \(anchor.commitNumber)"
      : "it does not know the vault's last anchor, of commit \(anchor.commitNumber)"
    return VaultedDatabaseError(
      .rolledBack,
      "\(home.databasePath) is an older copy, or has lost its last commits: \(state)",
      hint: "put the newest copy back with its -wal file; to go on with this one, and without what "
        + "is missing, run datavault queue accept-rollback")
  }
}
