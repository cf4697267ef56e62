internal import DataVault
internal import FileLayer
internal import GRDB
internal import SealedSQLite
internal import SealedVFS
internal import VaultCrypto

extension DatabaseKeeper {
  /// Verifies the home's database with its vault's key; where it is clean, `examine` looks at its rows
  /// through a connection that cannot write.
  func verify<Finding>(
    of vault: Vault, checksContents: Bool, progress: (PageProgress) -> Void,
    _ examine: (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> (pages: Verification, rows: Finding?) {
    do {
      let lock = try takeLock()
      defer { lock.release() }
      try await finishSalvage(of: vault)
      try await requireOwnDatabase(of: vault)
      let keys = try await vault.databaseKeys()
      return try keys.withFitting(home) { key in
        let pages = try SealedVFS.verify(
          home.databasePath, key: key, over: home.baseVFS, checksContents: checksContents,
          progress: progress)
        guard pages.isClean else { return (pages, nil) }
        let reader = try SealedDatabase.openReader(
          at: home.databasePath, key: key, over: home.baseVFS)
        defer { try? reader.close() }
        return (pages, try reader.read(examine))
      }
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Refuses what is not there, and what is whole and somebody else's; a database whose header is
  /// damaged is not told from another file before its pages are read.
  func requireOwnDatabase(of vault: Vault) async throws {
    let binding = OpeningDecision.Binding(try await vault.binding())
    switch OpeningDecision(binding: binding, database: try lookAtDatabase()) {
    case .open, .refuse(.damaged): return
    case .finishCreation:
      try home.fileSystem.synchronizeDirectory(home.path)
      try await vault.completeBinding()
    case .create, .resumeCreation: throw VaultedDatabaseError.refusal(.databaseMissing, of: home)
    case .refuse(let code): throw VaultedDatabaseError.refusal(code, of: home)
    }
  }
}

extension DatabaseKeys {
  /// Runs `body` with the key that the database is under: the pending one after a change that was
  /// interrupted.
  func withFitting<Result>(
    _ home: DataVaultHome, _ body: (borrowing SecretBytes) throws -> Result
  ) throws -> Result {
    if case .sealed(let header) = try SealedVFS.inspect(home.databasePath, over: home.baseVFS),
      pendingFits(header)
    {
      switch pending {
      case .some(let pending): return try body(pending)
      case .none: break
      }
    }
    return try body(current)
  }
}
