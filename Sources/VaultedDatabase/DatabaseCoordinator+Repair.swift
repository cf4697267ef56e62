package import DataVault
internal import FileLayer
package import GRDB
internal import SealedSQLite
internal import SealedSalvage
package import SealedVFS
package import SystemPackage
internal import VaultCrypto

/// The result of salvaging a damaged database.
package struct SalvagedDatabase<Repair: Sendable>: Sendable {
  /// The path of the damaged database now; it is still under the vault's key.
  package let damagedPath: FilePath
  /// The copied rows, by table; nil if this call only finished an earlier salvage.
  package let pages: SalvageReport?
  /// Whether the damaged database had its vault's anchor; nil if this call only finished an earlier
  /// salvage.
  package let anchor: AnchorState?
  /// The result of repairing its rows; nil if this call only finished an earlier salvage.
  package let rows: Repair?
}

/// The result of verifying a database and its rows.
package struct VerifiedDatabase<Finding> {
  /// The result for pages and log.
  package let pages: VerificationReport
  /// Whether the database has its vault's anchor.
  package let anchor: AnchorState
  /// The path of the damaged database, if this call first finished an interrupted salvage.
  package let finishedSalvage: FilePath?
  /// The result for its rows; nil if the pages are not clean.
  package let rows: Finding?
}

extension VerifiedDatabase: Sendable where Finding: Sendable {}

extension DatabaseCoordinator {
  /// Reads every page and the log of the home's database, compares it with the vault's anchor, and
  /// examines the rows of clean pages.
  ///
  /// The call only finishes an interrupted salvage and changes nothing else. No process must have
  /// the database open at the same time.
  ///
  /// - Throws: `busy`, `databaseMissing`, `databaseMismatch`, `plainDatabase`, `newerVersion`,
  ///   `vaultLocked`.
  package func verify<Finding: Sendable>(
    of vault: Vault, anchorStorage: any AnchorStorage, checksContents: Bool = true,
    progress: @Sendable (PageProgress) -> Void = { _ in },
    examine: @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedDatabase<Finding> {
    try await locked {
      let finishedSalvage = try await finishSalvage(of: vault)
      return try await examineAlone(
        vault, anchorStorage, checksContents, finishedSalvage: finishedSalvage, progress, examine)
    }
  }

  /// As ``verify(of:anchorStorage:checksContents:progress:examine:)``, for a caller who has the home for itself.
  func examineAlone<Finding: Sendable>(
    _ vault: Vault, _ anchorStorage: any AnchorStorage, _ checksContents: Bool,
    finishedSalvage: FilePath? = nil, _ progress: @Sendable (PageProgress) -> Void,
    _ examine: @Sendable (Database) throws -> Finding
  ) async throws -> VerifiedDatabase<Finding> {
    let fileID = try await requireOwnDatabase(of: vault)
    let keys = try await vault.databaseKeys()
    let (pages, rows): (VerificationReport, Finding?) = try keys.withFitting(home, fileID: fileID) {
      key in
      let pages = try SealedVFS.verify(
        home.databasePath, key: key, fileID: fileID, over: home.baseVFS,
        checksContents: checksContents, progress: progress)
      guard pages.isClean else { return (pages, nil) }
      return (pages, try look(key: key, busyMode: .immediateError, examine))
    }
    let anchor: AnchorState
    do {
      anchor = try await anchorState(of: vault, in: anchorStorage)
    } catch  where !(error is VaultError) {
      // A vault that has locked in between says nothing about the database.
      anchor = .unreadable(error)
    }
    return VerifiedDatabase(
      pages: pages, anchor: anchor, finishedSalvage: finishedSalvage, rows: rows)
  }

  /// Throws if the database is missing or belongs to another vault.
  ///
  /// - Parameter acceptsEarlier: whether a database from before a salvage will do.
  /// - Returns: the file id of the vault's database, whatever the header states.
  func requireOwnDatabase(
    of vault: Vault, acceptsEarlier: Bool = false
  ) async throws -> [UInt8] {
    let binding = try await vault.binding()
    switch try await decide(vault) {
    case .open, .refuse(.damaged): break
    case .finishCreation:
      try home.fileSystem.synchronizeDirectory(home.path)
      try await vault.completeBinding()
    case .create, .resumeCreation: throw VaultedDatabaseError.notCreated(home.databasePath)
    case .refuse(let code):
      if acceptsEarlier, code == .databaseMismatch,
        let earlier = try await earlierDatabaseID(of: vault)
      {
        return earlier
      }
      throw try await refusal(code, of: vault)
    }
    return binding?.databaseID ?? []
  }
}

extension DatabaseCoordinator {
  /// Replaces a damaged database with a new one that has everything intact:
  /// `docs/explanation/vaulted-database.md`, "Salvage".
  ///
  /// It copies everything intact, has `repair` make the rows consistent, binds the vault to the copy
  /// and renames it into place. The damaged database is kept under another name. The copy is
  /// compared with the vault's anchor, as the damaged database possibly does not open.
  ///
  /// - Parameters:
  ///   - acceptsRollback: whether to continue if the damaged database lacks the vault's anchor.
  ///   - knownTables: tables that the database must have, by name; their rows are found even where
  ///     the schema is lost.
  ///   - repair: makes the new database's rows consistent before it is used.
  /// - Throws: the errors of ``verify(of:anchorStorage:checksContents:progress:examine:)``;
  ///   `rolledBack`; `diskFull` and the like. After an error the damaged database is still in its
  ///   place.
  package func salvage<Repair: Sendable>(
    of vault: Vault, anchorStorage: any AnchorStorage, acceptsRollback: Bool = false,
    knownTables: [(name: String, sql: String)] = [],
    progress: @Sendable (PageProgress) -> Void = { _ in },
    repair: @Sendable (SalvageReport, DatabasePool) throws -> Repair
  ) async throws(VaultedDatabaseError) -> SalvagedDatabase<Repair> {
    try await locked {
      if let aside = try await finishSalvage(of: vault) {
        return SalvagedDatabase(damagedPath: aside, pages: nil, anchor: nil, rows: nil)
      }
      let fileID = try await requireOwnDatabase(of: vault, acceptsEarlier: true)
      if try await vault.databaseKeys().fit(home, fileID: fileID)?.isPending == true {
        try await vault.promotePendingKey()
      }
      // The index is removed after the vault is bound to the copy.
      let index = FilePath(home.databasePath.string + "-shm")
      if let status = try home.fileSystem.status(of: index), status.kind != .regular {
        throw VaultedDatabaseError(
          .inputOutput, "\(index) is not a regular file",
          hint: "find out who made it, and move it away")
      }
      for suffix in ["", "-wal", "-shm", "-journal"] {
        try home.fileSystem.remove(FilePath(home.salvagePath.string + suffix))
      }
      let keys = try await vault.databaseKeys()
      let pages = try SealedVFS.salvage(
        from: home.databasePath, key: keys.current, fileID: fileID, to: home.salvagePath,
        newKey: keys.current, knownTables: knownTables, over: home.baseVFS,
        fileSystem: home.fileSystem, progress: progress)
      let state: AnchorState
      let rows: Repair
      do {
        let anchor = try await vault.anchor()
        (state, rows) = try repaired(key: keys.current) { pool in
          let state =
            try anchor.map { try anchorState(of: pages, in: pool, anchorStorage, $0) } ?? .known
          if state.isMissing, !acceptsRollback {
            throw VaultedDatabaseError.rolledBack(
              state, home, acceptance: "queue salvage --accept-rollback")
          }
          return (state, try repair(pages, pool))
        }
      } catch {
        try? home.fileSystem.remove(home.salvagePath)
        throw error
      }
      guard case .sealed(let header) = try SealedVFS.inspect(home.salvagePath, over: home.baseVFS)
      else { throw VaultedDatabaseError.refusal(.damaged, home.salvagePath) }
      try home.fileSystem.synchronizeDirectory(home.path)
      // From here on the vault opens only the new database, under either name.
      do {
        try await vault.rebind(databaseID: header.fileID)
      } catch let error as VaultError where error.code == .locked {
        try? home.fileSystem.remove(home.salvagePath)
        throw error
      }
      guard let aside = try await finishSalvage(of: vault) else {
        throw VaultedDatabaseError.refusal(.databaseMissing, home.databasePath)
      }
      return SalvagedDatabase(damagedPath: aside, pages: pages, anchor: state, rows: rows)
    }
  }

  /// Compares a copy with the vault's anchor, before its rows are repaired.
  private func anchorState(
    of pages: SalvageReport, in pool: DatabasePool, _ anchorStorage: any AnchorStorage,
    _ anchor: DatabaseAnchor
  ) throws -> AnchorState {
    let page = try pool.writeWithoutTransaction { db in
      let page = Result { try anchorStorage.page(in: db) }
      // The copy is whole: a failure of SQLite says nothing about the damaged database.
      let isRead = [.SQLITE_OK, .SQLITE_ROW, .SQLITE_DONE].contains(db.lastErrorCode)
      if case .failure(let error) = page, !isRead { throw error }
      return page
    }
    if case .success(nil) = page, !pages.isSchemaWhole || !pages.notRecreated.isEmpty {
      return .unreadable(VaultedDatabaseError.refusal(.damaged, home.databasePath))
    }
    return AnchorState(page, of: anchor)
  }

  /// Runs `repair` with a pool on the new database; on return the database is closed, complete and
  /// on the disk.
  private func repaired<Repair>(
    key: borrowing SecretBytes, _ repair: (DatabasePool) throws -> Repair
  ) throws -> Repair {
    let pool = try SealedDatabase.openPool(
      at: home.salvagePath, key: key, creation: .never, over: home.baseVFS)
    let result = Result { try repair(pool) }
    try SealedDatabase.close(pool)
    let report = try result.get()
    // The last connection copies the log into the database and removes it.
    guard try home.fileSystem.status(of: FilePath(home.salvagePath.string + "-wal")) == nil else {
      throw VaultedDatabaseError(
        .busy, "the database \(home.salvagePath) is in use", hint: "try again")
    }
    return report
  }

  /// Renames a salvaged database into place, if the vault is already bound to it.
  ///
  /// - Returns: the path of the damaged database now; nil if there was nothing to finish.
  func finishSalvage(of vault: Vault) async throws -> FilePath? {
    guard try await isSalvageUnfinished(of: vault) else { return nil }
    let aside = try pathForDamaged()
    // The log and the journal first, which SQLite would otherwise apply to the new database.
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

  /// Whether the vault, which must be unlocked, is bound to a salvaged database that is not yet in its
  /// place.
  ///
  /// A salvage removes the vault's anchor, and only an opening stores one again. So an older copy
  /// under the salvaged database's name never takes the place of a database, not even of a damaged one.
  func isSalvageUnfinished(of vault: Vault) async throws -> Bool {
    guard try isSalvageUnfinished(OpeningDecision.Binding(try await vault.binding())) else {
      return false
    }
    return try await vault.anchor() == nil
  }

  /// Whether it can be so, by what the vault says while it is locked.
  ///
  /// A copy of the database that stands in its place is not one.
  func isSalvageUnfinished(_ binding: OpeningDecision.Binding) throws -> Bool {
    guard case .bound(let id) = binding else { return false }
    func isBound(_ path: FilePath) throws -> Bool {
      guard case .sealed(let header) = try SealedVFS.inspect(path, over: home.baseVFS) else {
        return false
      }
      return header.fileID == id
    }
    return try isBound(home.salvagePath) && !isBound(home.databasePath)
  }

  /// The name for the damaged database, whose log and journal are renamed before it.
  ///
  /// It is the first number after all that are taken, also by a log alone. Where an earlier call has
  /// renamed the database, or its log, it is the number that this call has used.
  private func pathForDamaged() throws -> FilePath {
    let prefix = "\(home.databasePath.lastComponent?.string ?? "").damaged-"
    let names = try home.fileSystem.entries(of: home.path) ?? []
    func last(_ suffixes: [String]) -> Int {
      names.compactMap { name in
        guard name.hasPrefix(prefix), let suffix = suffixes.first(where: name.hasSuffix) else {
          return nil
        }
        return Int(name.dropFirst(prefix.count).dropLast(suffix.count))
      }.filter { (1..<Int.max).contains($0) }.max() ?? 0
    }
    let (database, any) = (last([""]), last(["-wal", "-journal", ""]))
    let isRenamed = try home.fileSystem.status(of: home.databasePath) == nil
    let isLogRenamed = try any > database && !hasLogOrJournal()
    let number = isRenamed ? max(database, 1) : isLogRenamed ? any : any + 1
    return FilePath("\(home.databasePath.string).damaged-\(number)")
  }
}
