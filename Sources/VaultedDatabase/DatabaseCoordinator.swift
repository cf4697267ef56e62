package import DataVault
package import FileLayer
package import GRDB
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// Runs the protocols of `docs/explanation/vaulted-database.md` on one home, one at a time, on a thread that
/// can wait for locks and disks.
///
/// With the storage of a database's anchors, its methods refuse an older copy of the database, which those of
/// ``VaultedDatabase`` cannot. Across processes `messaging.lock` has the same effect: every protocol takes it first.
package actor DatabaseCoordinator: BlockingActor {
  let home: DataVaultHome
  package let executor = BlockingExecutor(label: "datavault.database-coordinator")

  package init(home: DataVaultHome) {
    self.home = home
  }

  /// Runs a protocol under `messaging.lock`.
  func locked<Result>(
    _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws(VaultedDatabaseError) -> Result {
    try home.requireShortPath()
    do throws(VaultError) {
      try home.makeDirectoryUnlessStoreDoes()
    } catch {
      throw VaultedDatabaseError(any: error)
    }
    do throws(VaultedDatabaseError) {
      return try await ProtocolLock.hold(home.lockPath, in: home.fileSystem, body)
    } catch  where (error.underlying as? SealedDatabaseError)?.code == .wrongKey {
      throw .noKeyFits(home.databasePath)
    }
  }

  /// Inspects the file at the database's path, without changing anything.
  func inspectDatabase() throws -> OpeningDecision.Database {
    switch try SealedVFS.inspect(home.databasePath, over: home.baseVFS) {
    case .absent:
      // A link that leads nowhere is there: the volume of the database is possibly not mounted.
      try hasLogOrJournal() || home.fileSystem.status(of: home.databasePath) != nil
        ? .orphanedLog : .absent
    case .sealed(let header): .sealed(fileID: header.fileID)
    case .plainSQLite: .plain
    case .newerVersion: .newerVersion
    case .empty, .foreign: .unrecognized
    }
  }

  /// Decides what to do with the database of an unlocked vault, without changing anything.
  ///
  /// If the file does not begin like the database that the vault names, it is read, if necessary to
  /// its end. One page that opens distinguishes damage from another file.
  func decide(_ vault: Vault) async throws -> OpeningDecision {
    let binding = OpeningDecision.Binding(try await vault.binding())
    let found = try inspectDatabase()
    if case .bound(let id) = binding, ![.absent, .orphanedLog].contains(found),
      try await vault.databaseKeys().fit(home, fileID: id)?.isHeaderDamaged == true
    {
      return OpeningDecision(binding: binding, database: .damagedHeader)
    }
    return OpeningDecision(binding: binding, database: found)
  }

  /// Whether the database's path has a log or a journal that is not empty.
  func hasLogOrJournal() throws -> Bool {
    try ["-wal", "-journal"].contains {
      try home.fileSystem.status(of: FilePath(home.databasePath.string + $0))?.byteCount ?? 0 > 0
    }
  }
}

extension DatabaseCoordinator {
  /// Opens the database as ``VaultedDatabase/open(_:vault:configuration:)`` does.
  ///
  /// - Parameters:
  ///   - anchorStorage: nil for a caller who cannot ask the database for its anchors.
  ///   - migrate: brings the tables up to date. No other process opens the database during this call.
  /// - Throws: `rolledBack` if the database lacks the anchor of its vault; neither file is changed then. The error of
  ///   `migrate`.
  package func open(
    _ vault: Vault, configuration: Configuration = Configuration(),
    anchorStorage: (any AnchorStorage)? = nil,
    migrate: @Sendable (DatabasePool) throws -> Void = { _ in }
  ) async throws(VaultedDatabaseError) -> VaultedDatabase {
    try await locked {
      let finishedSalvage = try await finishSalvage(of: vault)
      try await settle(vault, anchorStorage: anchorStorage)
      if let anchorStorage {
        try await requireAnchor(of: vault, in: anchorStorage, busyMode: configuration.busyMode)
      }
      let keys = try await vault.databaseKeys()
      let pool = try SealedDatabase.openPool(
        at: home.databasePath, key: keys.current, configuration: configuration,
        creation: .never, over: home.baseVFS)
      let tail = SealedDatabase.discardedLogTail(of: pool)
      let database = VaultedDatabase(
        pool: pool, discardedLogFrameCount: tail?.frameCount ?? 0, finishedSalvage: finishedSalvage)
      do {
        try migrate(pool)
      } catch {
        try? database.close()
        throw error
      }
      return database
    }
  }

  /// Brings vault and database to the state `bound` under one key, or throws.
  ///
  /// - Parameter anchorStorage: where the database keeps its anchors: it is asked for the vault's anchor before a
  ///   change of key continues.
  /// - Throws: `damaged` if a salvage was interrupted: its loss must reach the user before its damaged
  ///   database is under a former key.
  func settle(_ vault: Vault, anchorStorage: (any AnchorStorage)?) async throws {
    guard try await !isSalvageUnfinished(of: vault) else { throw unfinishedSalvage }
    switch try await decide(vault) {
    case .create:
      try await create(under: vault, databaseID: home.vaultParameters.random.bytes(count: 8))
    case .resumeCreation(let databaseID): try await create(under: vault, databaseID: databaseID)
    case .finishCreation:
      // The rename is possibly not durable yet.
      try home.fileSystem.synchronizeDirectory(home.path)
      try await vault.completeBinding()
    case .open: try await settleKeys(of: vault, anchorStorage: anchorStorage)
    case .refuse(let code): throw try await refusal(code, of: vault)
    }
  }

  /// The error for a database whose salvage must be completed first.
  var unfinishedSalvage: VaultedDatabaseError {
    VaultedDatabaseError(
      .damaged, "the salvage of the database \(home.databasePath) was interrupted",
      hint: "run datavault queue salvage: it completes the interrupted one")
  }

  /// The error for a refusal of ``decide(_:)``.
  func refusal(
    _ code: VaultedDatabaseError.Code, of vault: Vault
  ) async throws -> VaultedDatabaseError {
    guard code == .databaseMismatch, try await earlierDatabaseID(of: vault) != nil else {
      return .refusal(code, home.databasePath)
    }
    return VaultedDatabaseError(
      code,
      "the vault has the key of the database \(home.databasePath), but belongs to another copy of it",
      hint:
        "if the vault is from a backup or from before a salvage, run datavault queue salvage, which "
        + "continues with this database; if the database is the older one, put the newer one back")
  }

  /// The file id of a database from before a salvage: the vault's key opens it, although the vault
  /// names another one.
  ///
  /// - Returns: nil for any other database.
  func earlierDatabaseID(of vault: Vault) async throws -> [UInt8]? {
    guard case .bound = OpeningDecision.Binding(try await vault.binding()),
      case .sealed(let header) = try SealedVFS.inspect(home.databasePath, over: home.baseVFS),
      try header.matches(key: await vault.databaseKeys().current)
    else { return nil }
    return header.fileID
  }

  /// Makes the database: stores key and id, builds the file under another name, renames it, and
  /// binds it.
  private func create(under vault: Vault, databaseID: [UInt8]) async throws {
    let key = try await vault.beginBinding(databaseID: databaseID)
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try home.fileSystem.remove(FilePath(home.creationPath.string + suffix))
    }
    // SQLite gives its log and journal the permissions of the database, so all of them get 0600.
    let file = try home.fileSystem.create(home.creationPath, permissions: .ownerReadWrite)
    do {
      // Closed before SQLite opens it: closing a descriptor ends the process's locks on the file.
      defer { file.close() }
      if let owner = try home.fileSystem.ownerOfNewFile(in: home.path) {
        try file.changeOwner(to: owner)
      }
    }
    try build(under: key, databaseID: databaseID)
    try home.fileSystem.rename(home.creationPath, to: home.databasePath)
    try home.fileSystem.synchronizeDirectory(home.path)
    try await vault.completeBinding()
  }

  private func build(under key: borrowing SecretBytes, databaseID: [UInt8]) throws {
    let pool = try SealedDatabase.openPool(
      at: home.creationPath, key: key, creation: .ifAbsent(autoVacuum: .incremental),
      newFileID: databaseID, over: home.baseVFS)
    let emptying = Result {
      // On a full disk SQLite closes without an error, and the log's content would not be renamed.
      try pool.writeWithoutTransaction { db in try db.checkpoint(.truncate) }
    }
    try SealedDatabase.close(pool)
    _ = try emptying.get()
  }
}
