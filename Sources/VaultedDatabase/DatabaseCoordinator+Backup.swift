package import DataVault
internal import FileLayer
package import GRDB
package import SealedVFS
package import SystemPackage
package import VaultCrypto

/// The vaults and the database of a backup or a restored home, verified.
package struct VerifiedBackup<Finding: Sendable>: Sendable {
  /// The number of vaults.
  package let vaultCount: Int
  /// The result of verifying the database; nil if there is none.
  package let database: VerifiedDatabase<Finding>?
  /// Frames that a recovery of the log left out before the backup was made; usually 0.
  package let discardedLogFrameCount: Int
}

/// Backups: `docs/explanation/vaulted-database.md`, "Backup".
extension DatabaseCoordinator {
  /// Copies the vaults and one state of the database to a new directory, while other processes use them.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault, unlocked; nil if there is none.
  ///   - place: the path of the backup, which must be free or an empty directory.
  ///   - examine: examines the copied database; throws if the backup is not to be kept.
  ///   - progress: called with the pages done, first of the copying, then of the verification.
  /// - Returns: what the backup has; it is durable.
  /// - Throws: `alreadyExists`; `busy`, `rolledBack`, `damaged`, `diskFull` and the like. There is no backup then, unless
  ///   only the last sync of the parent directory fails: the error says so.
  package func backUp<Finding: Sendable>(
    _ vault: Vault?, to place: FilePath, anchorStorage: any AnchorStorage,
    checksContents: Bool = true, progress: @Sendable (PageProgress) -> Void = { _ in },
    examine: @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedBackup<Finding> {
    do {
      let new = try NewHome(at: place, like: home)
      let target = new.home
      let databaseID = home.vaultParameters.random.bytes(count: SealedHeader.fileIDByteCount)
      // A change of key needs exclusive use of the database, which the snapshot prevents from here on. No database is
      // made while the vaults are copied.
      var (snapshot, bound, vaultCount) = try await locked { () -> (SnapshotCopy?, Vault?, Int) in
        guard let vault, try await vault.binding() != nil else {
          try requireNoDatabase(hasVault: vault != nil)
          let count = try await copyVaults(to: target, without: nil)
          let hasCopy = try await Vault.exists(.messaging, in: target.store)
          guard vault != nil || !hasCopy else {
            throw VaultedDatabaseError(
              .busy, "another process is making the vault 'messaging'", hint: "try again")
          }
          return (nil, nil, count)
        }
        let snapshot = try await beginSnapshot(of: vault, anchorStorage)
        let count = try await copyVaults(to: target, without: vault.id)
        let bound = try await vault.copy(to: target.store, databaseID: databaseID)
        return (snapshot, bound, count)
      }
      let discarded = snapshot?.discardedLogTail?.frameCount ?? 0
      if let snapshot, let bound {
        let target = try CopyTarget.sealed(
          new.home.databasePath, key: try await bound.databaseKeys().current,
          newFileID: databaseID, over: home.baseVFS, fileSystem: home.fileSystem)
        try snapshot.run(into: target, progress: progress)
      }
      // The log grows as long as the snapshot is open.
      snapshot = nil
      if let vault { try await BackupList(of: new.home).write(sealedBy: vault) }
      let database = try await new.verified(
        bound, anchorStorage, checksContents, progress, examine)
      await bound?.lock()
      try new.finish()
      return VerifiedBackup(
        vaultCount: vaultCount, database: database, discardedLogFrameCount: discarded)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Copies one state of the database to a file under another key, while other processes use it.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault, unlocked.
  ///   - path: a path that is free; its directory must exist.
  ///   - key: 32 bytes.
  /// - Throws: `busy`, `rolledBack`, `damaged`, `diskFull` and the like. There is no file then.
  package func copyDatabase(
    of vault: Vault, to path: FilePath, key: borrowing SecretBytes,
    anchorStorage: any AnchorStorage, progress: @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    do {
      let snapshot = try await locked { () -> SnapshotCopy in
        try await beginSnapshot(of: vault, anchorStorage)
      }
      let target = try CopyTarget.sealed(
        path, key: key, over: home.baseVFS, fileSystem: home.fileSystem)
      try snapshot.run(into: target, progress: progress)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Begins to read one state of the database; call it under the lock.
  private func beginSnapshot(
    of vault: Vault, _ anchorStorage: any AnchorStorage
  ) async throws -> SnapshotCopy {
    try await settle(vault, anchorStorage: anchorStorage)
    try await requireAnchor(of: vault, in: anchorStorage, busyMode: Self.connectionBusyMode)
    return try SnapshotCopy(
      of: home.databasePath, key: try await vault.databaseKeys().current, over: home.baseVFS,
      busyTimeout: ProtocolLock.busyTimeout)
  }

  /// Verifies a backup, which is this home, and changes nothing.
  ///
  /// - Parameter vault: the messaging vault of the backup, unlocked; nil if it has none.
  package func verifyBackup<Finding: Sendable>(
    _ vault: Vault?, anchorStorage: any AnchorStorage, checksContents: Bool = true,
    progress: @Sendable (PageProgress) -> Void = { _ in },
    examine: @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedBackup<Finding> {
    try await reading {
      let isBound = try await requireBackup(of: vault)
      let ids = try await Vault.list(in: home.store)
      for id in ids where id != vault?.id {
        _ = try await Vault.get(id, in: home.store, parameters: home.vaultParameters).verify()
      }
      _ = try await vault?.verify()
      try await BackupList(of: home).verify(openedBy: vault)
      guard let vault, isBound else {
        return VerifiedBackup(vaultCount: ids.count, database: nil, discardedLogFrameCount: 0)
      }
      let database = try await examineAlone(
        vault, anchorStorage, checksContents, progress, examine)
      try database.pages.requireWholeFile()
      return VerifiedBackup(
        vaultCount: ids.count, database: database, discardedLogFrameCount: 0)
    }
  }

  /// Makes a home of a backup, which is this home: the same bytes, verified before they get their name.
  ///
  /// The parameters and errors are those of ``backUp(_:to:anchorStorage:checksContents:progress:examine:)``.
  package func restore<Finding: Sendable>(
    _ vault: Vault?, to place: FilePath, anchorStorage: any AnchorStorage,
    checksContents: Bool = true, progress: @Sendable (PageProgress) -> Void = { _ in },
    examine: @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedBackup<Finding> {
    try await reading {
      let isBound = try await requireBackup(of: vault)
      let new = try NewHome(at: place, like: home)
      let vaultCount = try await copyVaults(to: new.home, without: nil)
      try await BackupList(of: home).verify(openedBy: vault, of: new.home)
      if isBound {
        try copyDatabase(to: new.home, progress: progress)
      }
      let database = try await new.verified(
        isBound ? vault : nil, anchorStorage, checksContents, progress, examine)
      try new.finish()
      return VerifiedBackup(vaultCount: vaultCount, database: database, discardedLogFrameCount: 0)
    }
  }

  /// Reads this backup.
  ///
  /// The hint of each fault is another backup.
  private func reading<Result>(
    _ body: () async throws -> sending Result
  ) async throws(VaultedDatabaseError) -> sending Result {
    do {
      let isEmpty = try await Vault.list(in: home.store).isEmpty
      guard try !isEmpty || inspectDatabase() != .absent else {
        throw VaultedDatabaseError(
          .databaseMissing, "there is no backup in \(home.path)", hint: "check the path")
      }
    } catch {
      throw VaultedDatabaseError(any: error)
    }
    do {
      return try await body()
    } catch let error as UsedBackup {
      throw VaultedDatabaseError(any: error.refusal)
    } catch {
      let error = VaultedDatabaseError(any: error)
      guard error.isDamageOfBackup else { throw error }
      throw VaultedDatabaseError(
        .damaged, "the backup \(home.path) is damaged: \(error.message)",
        hint: "use an older backup", underlying: error)
    }
  }

  /// Not damage: the backup was used as a home.
  private struct UsedBackup: Error {
    let refusal: VaultedDatabaseError
  }

  private func requireNoDatabase(hasVault: Bool) throws {
    guard try inspectDatabase() != .absent else { return }
    throw VaultedDatabaseError.refusal(
      hasVault ? .databaseMismatch : .keyMissing, home.databasePath)
  }

  /// Throws if this home is no whole backup.
  ///
  /// - Returns: whether it has a database.
  private func requireBackup(of vault: Vault?) async throws -> Bool {
    if try hasLogOrJournal() {
      throw UsedBackup(
        refusal: VaultedDatabaseError(
          .damaged, "the backup \(home.path) was used as a home: its database has a log",
          hint: "use it as a home, and take a backup of it"))
    }
    guard let vault, try await vault.binding() != nil else {
      try requireNoDatabase(hasVault: vault != nil)
      return false
    }
    guard try home.fileSystem.status(of: home.databasePath)?.kind == .regular else {
      throw VaultedDatabaseError(.damaged, "the file messaging.db is missing")
    }
    return true
  }

  private func copyDatabase(
    to target: DataVaultHome, progress: (PageProgress) -> Void
  ) throws {
    let byteCount = try home.fileSystem.status(of: home.databasePath)?.byteCount ?? 0
    let pageByteCount = Int64(PageLayout.byteCount)
    try home.fileSystem.copyFile(
      home.databasePath, to: target.databasePath,
      owner: try home.fileSystem.ownerOfNewFile(in: target.path)
    ) {
      progress(
        PageProgress(
          completedPageCount: Int(min($0, byteCount) / pageByteCount),
          pageCount: Int(byteCount / pageByteCount)))
    }
  }

  private func copyVaults(to target: DataVaultHome, without left: VaultID?) async throws -> Int {
    let ids = try await Vault.list(in: home.store)
    for id in ids where id != left { try await Vault.copy(id, from: home.store, to: target.store) }
    return ids.count
  }
}

extension NewHome {
  /// Verifies the database before the home gets its name; nil without a vault that has one.
  fileprivate func verified<Finding: Sendable>(
    _ vault: Vault?, _ anchorStorage: any AnchorStorage, _ checksContents: Bool,
    _ progress: @Sendable (PageProgress) -> Void,
    _ examine: @Sendable (Database) throws -> Finding
  ) async throws -> VerifiedDatabase<Finding>? {
    guard let vault else { return nil }
    let database = try await DatabaseCoordinator(home: home).examineAlone(
      vault, anchorStorage, checksContents, progress, examine)
    guard database.pages.isClean else {
      throw VaultedDatabaseError(
        .damaged, "the copy of the database has faults, and is not kept",
        hint: "run datavault queue verify, which names them")
    }
    guard !database.anchor.isMissing else {
      throw VaultedDatabaseError(
        .rolledBack, "the copy of the database lacks the vault's rollback anchor, and is not kept",
        hint: "run datavault queue verify")
    }
    try database.pages.requireWholeFile()
    return database
  }
}

extension VerificationReport {
  /// Throws if the file has bytes after the database: a copy has none.
  fileprivate func requireWholeFile() throws {
    guard pageCount == databasePageCount, trailingByteCount == 0 else {
      throw VaultedDatabaseError(
        .damaged, "messaging.db is longer than the database in it")
    }
  }
}

extension VaultedDatabaseError {
  /// Whether an error of reading a backup shows that its files are not those that were written.
  fileprivate var isDamageOfBackup: Bool {
    let codes: Set<Code> = [
      .damaged, .databaseMismatch, .databaseMissing, .keyMissing, .plainDatabase, .rolledBack,
    ]
    let ofVault: Set<VaultError.Code> = [
      .damaged, .doesNotExist, .keyMissing, .notSealedData, .truncated,
    ]
    return codes.contains(code)
      || (underlying as? VaultError).map { ofVault.contains($0.code) } == true
  }
}
