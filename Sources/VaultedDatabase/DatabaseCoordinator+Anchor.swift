package import DataVault
internal import FileLayer
package import GRDB
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

extension DatabaseCoordinator {
  /// Throws if the database lacks the anchor of its vault; nothing is changed.
  ///
  /// - Parameter anchorStorage: nil for a caller who cannot ask the database for its anchors.
  func requireAnchor(
    of vault: Vault, in anchorStorage: (any AnchorStorage)?, busyMode: Database.BusyMode
  ) async throws {
    let state = try await anchorState(of: vault, in: anchorStorage, busyMode: busyMode)
    switch state {
    case .known: return
    case .missing: throw VaultedDatabaseError.rolledBack(state, home)
    case .unreadable(let error): throw error
    }
  }

  /// How long a look at the database waits for other connections, before they are locked out.
  static var connectionBusyMode: Database.BusyMode {
    .timeout(ProtocolLock.connectionBusyTimeout / .seconds(1))
  }

  /// Throws if a change of key would lose commits; nothing is changed.
  ///
  /// That is if the database lacks the anchor of its vault, or if a recovery would leave out frames of the log. An engine
  /// that starts reports such frames and continues. A change of key would delete them for good.
  func requireNothingIsLost(of vault: Vault, in anchorStorage: (any AnchorStorage)?) async throws {
    let busyMode = Self.connectionBusyMode
    try await requireAnchor(of: vault, in: anchorStorage, busyMode: busyMode)
    let keys = try await vault.databaseKeys()
    let fileID = try await vault.binding()?.databaseID ?? []
    try keys.withFitting(home, fileID: fileID) { key in
      try look(key: key, busyMode: busyMode, refusesDiscardedFrames: true) { db in
        _ = try Int.fetchOne(db, sql: "PRAGMA user_version")
      }
    }
  }

  /// Compares the home's database with the anchor of its vault; the caller holds `messaging.lock`.
  ///
  /// File and log stay unchanged, whereas closing a pool's last connection would copy the log into
  /// the file.
  func anchorState(
    of vault: Vault, in anchorStorage: (any AnchorStorage)?,
    busyMode: Database.BusyMode = .timeout(ProtocolLock.busyTimeout / .seconds(1))
  ) async throws -> AnchorState {
    guard let anchor = try await vault.anchor() else { return .known }
    let keys = try await vault.databaseKeys()
    let fileID = try await vault.binding()?.databaseID ?? []
    return try keys.withFitting(home, fileID: fileID) { key in
      do {
        let page = try look(key: key, busyMode: busyMode) { db in
          do { return try anchorStorage?.page(in: db) } catch {
            throw UnreadableAnchor(cause: error)
          }
        }
        return anchorStorage == nil ? .known : AnchorState(.success(page), of: anchor)
      } catch let error as UnreadableAnchor {
        return .unreadable(error.cause)
      }
    }
  }

  /// Carries the reason why the anchor cannot be read out of a transaction.
  ///
  /// Damage ends the transaction. If the body returned nevertheless, GRDB would commit, and the commit would fail with
  /// `SQLITE_ABORT` in place of the cause.
  private struct UnreadableAnchor: Error {
    let cause: any Error
  }

  /// Reads the database through a connection of its own, and leaves its files unchanged.
  ///
  /// If there is a log or a journal, the connection cannot write, so neither is applied. If there
  /// is none, it removes the files that SQLite makes beside the database.
  func look<Finding>(
    key: borrowing SecretBytes, busyMode: Database.BusyMode, refusesDiscardedFrames: Bool = false,
    _ body: (Database) throws -> Finding
  ) throws -> Finding {
    var configuration = Configuration()
    configuration.busyMode = busyMode
    do {
      let reader = try SealedDatabase.openReader(
        at: home.databasePath, key: key, configuration: configuration, over: home.baseVFS,
        removesEmptyLog: try !hasLogOrJournal())
      let finding = Result { try reader.read(body) }
      let discarded = SealedDatabase.discardedLogTail(of: reader)
      try reader.close()
      if refusesDiscardedFrames, let discarded {
        throw VaultedDatabaseError.discardedFrames(discarded.frameCount, home)
      }
      return try finding.get()
    } catch  where hasMetHotJournal(error) {
      throw VaultedDatabaseError.hotJournal(beside: home)
    }
  }

  /// Whether a connection that cannot write was refused for a journal that SQLite would roll back.
  private func hasMetHotJournal(_ error: any Error) -> Bool {
    let cause = (error as? SealedDatabaseError)?.underlying ?? error
    let journal = FilePath("\(home.databasePath)-journal")
    // SQLite takes anything of this name for a journal, also a directory.
    return (cause as? DatabaseError)?.extendedResultCode == .SQLITE_READONLY_ROLLBACK
      && (try? home.fileSystem.status(of: journal))?.kind == .regular
  }

  /// Records how far the database has come: commits a new anchor, durably, and then stores it in the vault.
  ///
  /// A kill between the two leaves an anchor that is never used.
  ///
  /// - Throws: `vaultLocked`, `vault`, `busy`, `diskFull` and the like; the last anchor is then still valid.
  package func recordAnchor(
    of vault: Vault, in pool: DatabasePool, _ anchorStorage: any AnchorStorage
  ) async throws(VaultedDatabaseError) {
    try await locked {
      let stored = try await vault.anchor()
      try await vault.storeAnchor(try add(to: anchorStorage, keeping: stored, in: pool))
    }
  }

  /// Accepts a database that opening refuses as `rolledBack`; its missing commits are lost.
  ///
  /// - Returns: nil if it was not rolled back; nothing is changed then.
  /// - Throws: the errors of ``open(_:configuration:anchorStorage:)``.
  package func acceptRollback(
    of vault: Vault, _ anchorStorage: any AnchorStorage
  ) async throws(VaultedDatabaseError) -> AcceptedRollback? {
    try await locked {
      try await settle(vault, anchorStorage: nil)
      let state = try await anchorState(of: vault, in: anchorStorage)
      if case .unreadable(let error) = state { throw error }
      guard case .missing(let expected, let found) = state else { return nil }
      let keys = try await vault.databaseKeys()
      var configuration = Configuration()
      configuration.busyMode = .timeout(ProtocolLock.busyTimeout / .seconds(1))
      let pool = try SealedDatabase.openPool(
        at: home.databasePath, key: keys.current, configuration: configuration, creation: .never,
        over: home.baseVFS)
      defer { try? SealedDatabase.close(pool) }
      let tail = SealedDatabase.discardedLogTail(of: pool)
      // The database gets the anchor first: until the vault has it, opening still refuses the
      // rollback.
      let accepted = try add(to: anchorStorage, keeping: nil, in: pool)
      try await vault.storeAnchor(accepted, acceptsOlder: true)
      return AcceptedRollback(
        expectedCommitNumber: expected, foundCommitNumber: found,
        discardedLogFrameCount: tail?.frameCount ?? 0)
    }
  }

  private func add(
    to anchorStorage: any AnchorStorage, keeping stored: DatabaseAnchor?, in pool: DatabasePool
  ) throws -> DatabaseAnchor {
    let id = home.vaultParameters.random.bytes(count: DatabaseAnchor.idByteCount)
    let commitNumber = try pool.writeWithoutTransaction { db in
      try anchorStorage.add(id, keeping: stored, in: db)
    }
    return DatabaseAnchor(id: id, commitNumber: commitNumber)
  }
}

extension VaultedDatabaseError {
  /// A recovery would leave out frames of the log: a power cut tore them, or they are damaged.
  static func discardedFrames(_ count: Int, _ home: DataVaultHome) -> VaultedDatabaseError {
    VaultedDatabaseError(
      .damaged,
      "the last \(count) frames of \(home.databasePath)-wal are torn or damaged, and a change of key would delete them",
      hint:
        "run datavault queue verify; datavault queue salvage copies what is intact, and any other queue "
        + "command continues without these frames")
  }

  /// SQLite would roll back a journal beside the home's database, which uses a write-ahead log.
  ///
  /// No protocol leaves a journal there: another program does, or an attacker who wants to restore an older state. A
  /// rollback would change the files before the database is asked for the anchor.
  static func hotJournal(beside home: DataVaultHome) -> VaultedDatabaseError {
    let journal = "\(home.databasePath)-journal"
    return VaultedDatabaseError(
      .damaged,
      "\(journal) is the journal of an interrupted transaction, which no engine leaves there",
      hint:
        "move it to another directory and run datavault queue verify; if that finds no problem, continue without "
        + "the journal, otherwise put it back and run datavault queue salvage")
  }

  /// - Parameter acceptance: the command that accepts the database as it is.
  static func rolledBack(
    _ state: AnchorState, _ home: DataVaultHome, acceptance: String = "queue accept-rollback"
  ) -> VaultedDatabaseError {
    VaultedDatabaseError(
      .rolledBack,
      "\(home.databasePath) is an older copy or has lost its last commits: \(state)",
      hint: "put the newest copy back with its -wal file; to go on with this one, and without what "
        + "is missing, run datavault \(acceptance)")
  }
}
