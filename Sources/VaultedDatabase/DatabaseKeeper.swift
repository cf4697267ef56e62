internal import DataVault
internal import FileLayer
internal import SealedVFS
internal import SystemPackage

/// Carries out the protocols of `docs/vaulted-database.md` on one home, one at a time, on a thread
/// that may wait for locks and disks.
///
/// Across processes `messaging.lock` does the same: every protocol begins by taking it.
actor DatabaseKeeper {
  let home: DataVaultHome
  private let executor = BlockingExecutor(label: "datavault.database-keeper")

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  init(home: DataVaultHome) {
    self.home = home
  }

  /// Takes `messaging.lock`, which the caller gives back on every path.
  func takeLock() throws(VaultedDatabaseError) -> FileLock {
    do throws(VaultError) {
      try home.makeWhereTheStoreDoesNot()
    } catch {
      throw VaultedDatabaseError(error)
    }
    return try ProtocolLock.take(home.lockPath, in: home.fileSystem)
  }

  /// What lies at the path of the database, found out without changing anything.
  func lookAtDatabase() throws(VaultedDatabaseError) -> OpeningDecision.Database {
    let inspection: FileInspection
    do throws(SealedFileError) {
      inspection = try SealedVFS.inspect(home.databasePath, over: home.baseVFS)
    } catch {
      throw VaultedDatabaseError(error)
    }
    return switch inspection {
    case .absent: try hasLogOrJournal() ? .orphanedLog : .absent
    case .sealed(let header): .sealed(fileID: header.fileID)
    case .plainSQLite: .plain
    case .newerVersion: .newerVersion
    case .empty, .foreign: .unrecognized
    }
  }

  /// What to do with the database of an unlocked vault, found out without changing anything.
  ///
  /// A database that the vault names and that does not begin like it is read, to its end if need be: one
  /// page that opens tells damage from another's file.
  func decide(_ vault: Vault) async throws -> OpeningDecision {
    let binding = OpeningDecision.Binding(try await vault.binding())
    let found = try lookAtDatabase()
    if case .bound(let id) = binding, ![.absent, .orphanedLog].contains(found),
      try await vault.databaseKeys().fit(home, fileID: id)?.isHeaderDamaged == true
    {
      return OpeningDecision(binding: binding, database: .damagedHeader)
    }
    return OpeningDecision(binding: binding, database: found)
  }

  /// Whether a log or a journal in which something is lies at the database's place.
  func hasLogOrJournal() throws(VaultedDatabaseError) -> Bool {
    do throws(FileError) {
      for suffix in ["-wal", "-journal"] {
        let path = FilePath(home.databasePath.string + suffix)
        if let status = try home.fileSystem.status(of: path), status.byteCount > 0 { return true }
      }
      return false
    } catch {
      throw VaultedDatabaseError(error)
    }
  }
}
