internal import DataVault
internal import FileLayer
internal import GRDB
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

extension DatabaseCoordinator {
  /// Verifies the home's database with its vault's key and asks it for the vault's anchor; where it is clean,
  /// `examine` looks at its rows.
  func verify<Finding>(
    of vault: Vault, ledger: any AnchorStorage, checksContents: Bool,
    progress: (PageProgress) -> Void, _ examine: (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedDatabase<Finding> {
    do {
      let lock = try takeLock()
      defer { lock.release() }
      try await finishSalvage(of: vault)
      let fileID = try await requireOwnDatabase(of: vault)
      let keys = try await vault.databaseKeys()
      let (pages, rows): (VerificationReport, Finding?) = try keys.withFitting(home, fileID: fileID)
      {
        key in
        let pages = try SealedVFS.verify(
          home.databasePath, key: key, fileID: fileID, over: home.baseVFS,
          checksContents: checksContents,
          progress: progress)
        guard pages.isClean else { return (pages, nil) }
        return (pages, try look(key: key, busyMode: .immediateError, examine))
      }
      let anchor: AnchorState
      do {
        anchor = try await anchorState(of: vault, in: ledger)
      } catch {
        anchor = .unreadable(error)
      }
      return VerifiedDatabase(pages: pages, anchor: anchor, rows: rows)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Refuses what is not there and what is somebody else's.
  ///
  /// - Returns: the file id that the vault's database has, whatever its header states.
  func requireOwnDatabase(of vault: Vault) async throws -> [UInt8] {
    let binding = try await vault.binding()
    switch try await decide(vault) {
    case .open, .refuse(.damaged): break
    case .finishCreation:
      try home.fileSystem.synchronizeDirectory(home.path)
      try await vault.completeBinding()
    case .create, .resumeCreation: throw VaultedDatabaseError.refusal(.databaseMissing, of: home)
    case .refuse(let code): throw VaultedDatabaseError.refusal(code, of: home)
    }
    return binding?.databaseID ?? []
  }
}

/// The protocol of `docs/explanation/vaulted-database.md`, "Salvage".
extension DatabaseCoordinator {
  /// Copies what is whole into a new database, has `mend` look after its rows, binds the vault to it and
  /// puts it in the place of the damaged one, which is kept under another name.
  ///
  /// The copy is asked for the vault's anchor, as the damaged database may not open.
  func salvage<Mending: Sendable>(
    of vault: Vault, ledger: any AnchorStorage, acceptsRollback: Bool,
    progress: (PageProgress) -> Void,
    _ mend: (SalvageReport, DatabasePool) throws -> Mending
  ) async throws(VaultedDatabaseError) -> SalvagedDatabase<Mending> {
    do {
      let lock = try takeLock()
      defer { lock.release() }
      if let aside = try await finishSalvage(of: vault) {
        return SalvagedDatabase(damagedPath: aside, pages: nil, anchor: nil, rows: nil)
      }
      let fileID = try await requireOwnDatabase(of: vault)
      if try await vault.databaseKeys().fit(home, fileID: fileID)?.isPending == true {
        try await vault.promotePendingKey()
      }
      for suffix in ["", "-wal", "-shm", "-journal"] {
        try home.fileSystem.remove(FilePath(home.salvagePath.string + suffix))
      }
      let keys = try await vault.databaseKeys()
      let pages = try SealedDatabase.salvage(
        from: home.databasePath, key: keys.current, fileID: fileID, to: home.salvagePath,
        newKey: keys.current, over: home.baseVFS, fileSystem: home.fileSystem, progress: progress)
      let anchor = try await vault.anchor()
      let state: AnchorState
      let rows: Mending
      do {
        (state, rows) = try mended(key: keys.current) { pool in
          let state = try anchor.map { try anchorState(of: pages, in: pool, ledger, $0) } ?? .known
          if state.isMissing, !acceptsRollback {
            throw VaultedDatabaseError.rolledBack(
              state, home, acceptance: "queue salvage --accept-rollback")
          }
          return (state, try mend(pages, pool))
        }
      } catch {
        try? home.fileSystem.remove(home.salvagePath)
        throw error
      }
      guard case .sealed(let header) = try SealedVFS.inspect(home.salvagePath, over: home.baseVFS)
      else { throw VaultedDatabaseError.refusal(.damaged, home.salvagePath) }
      try home.fileSystem.synchronizeDirectory(home.path)
      // From here on nothing opens but the new database, wherever it lies.
      try await vault.rebind(databaseID: header.fileID)
      guard let aside = try await finishSalvage(of: vault) else {
        throw VaultedDatabaseError.refusal(.databaseMissing, of: home)
      }
      return SalvagedDatabase(damagedPath: aside, pages: pages, anchor: state, rows: rows)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// What a copy knows of the vault's anchor, before its rows are mended.
  private func anchorState(
    of pages: SalvageReport, in pool: DatabasePool, _ ledger: any AnchorStorage,
    _ anchor: DatabaseAnchor
  ) throws -> AnchorState {
    let page = pool.writeWithoutTransaction { db in Result { try ledger.page(in: db) } }
    if case .success(nil) = page, !pages.isSchemaWhole {
      return .unreadable(VaultedDatabaseError.refusal(.damaged, of: home))
    }
    return AnchorState(page, of: anchor)
  }

  /// Has a pool on the new database; on return it is closed, whole and on the disk.
  private func mended<Mending>(
    key: borrowing SecretBytes, _ mend: (DatabasePool) throws -> Mending
  ) throws -> Mending {
    let pool = try SealedDatabase.openPool(
      at: home.salvagePath, key: key, creation: .never, over: home.baseVFS)
    let result = Result { try mend(pool) }
    try SealedDatabase.close(pool)
    let mending = try result.get()
    // The last connection carries the log over and removes it.
    guard try home.fileSystem.status(of: FilePath(home.salvagePath.string + "-wal")) == nil else {
      throw VaultedDatabaseError(.busy, "\(home.salvagePath) is in use", hint: "try again")
    }
    return mending
  }

  /// Puts a salvaged database in its place to which the vault is bound already.
  ///
  /// - Returns: where the damaged one lies now; nil where there was nothing to finish.
  @discardableResult
  func finishSalvage(of vault: Vault) async throws -> FilePath? {
    guard case .bound(let id) = OpeningDecision.Binding(try await vault.binding()),
      case .sealed(let header) = try SealedVFS.inspect(home.salvagePath, over: home.baseVFS),
      header.fileID == id
    else { return nil }
    let aside = try pathForDamaged()
    // First what SQLite would take for the new database's own.
    for suffix in ["-wal", "-journal", ""] {
      let path = FilePath(home.databasePath.string + suffix)
      guard let status = try home.fileSystem.status(of: path) else { continue }
      if status.byteCount == 0, !suffix.isEmpty {
        try home.fileSystem.remove(path)
      } else {
        try home.fileSystem.rename(path, to: FilePath(aside.string + suffix))
      }
    }
    try home.fileSystem.remove(FilePath(home.databasePath.string + "-shm"))
    try home.fileSystem.synchronizeDirectory(home.path)
    try home.fileSystem.rename(home.salvagePath, to: home.databasePath)
    try home.fileSystem.synchronizeDirectory(home.path)
    return aside
  }

  /// The first free name; one of which only a log is there yet is that of a salvage to be finished.
  private func pathForDamaged() throws -> FilePath {
    var number = 1
    while true {
      let path = FilePath("\(home.databasePath.string).damaged-\(number)")
      if try home.fileSystem.status(of: path) == nil { return path }
      number += 1
    }
  }
}
