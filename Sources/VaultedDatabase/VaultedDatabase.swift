public import DataVault
public import GRDB
package import SealedSQLite
public import SealedVFS
internal import Synchronization
package import SystemPackage

/// A sealed database whose key and identity a vault keeps.
///
/// It answers for everything that spans the two files: which database belongs to which vault, how
/// the first one is made, and how both change keys together. The protocols, and what a kill between
/// any two of their steps leaves, are in `docs/explanation/vaulted-database.md`.
public final class VaultedDatabase: Sendable {
  /// The database, encrypted, in WAL mode, durable at each commit (`synchronous=FULL`).
  public let pool: DatabasePool

  /// Frames at the end of the write-ahead log that the opening had to leave out; 0 as a rule.
  ///
  /// They were torn by a power cut in the middle of a commit that nobody was told of, or damaged
  /// later: then commits that were acknowledged are gone. The log alone cannot tell.
  public let discardedLogFrameCount: Int

  /// Opens the home's database with the key that its vault keeps; makes and binds one where the
  /// vault has none and none is there.
  ///
  /// A creation or a change of key that a crash interrupted is finished first. On return the
  /// binding is durable.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault, unlocked.
  ///   - configuration: GRDB's, for the pool; the key is added to it.
  /// - Throws: `vaultLocked`, `databaseMissing`, `databaseMismatch`, `plainDatabase`,
  ///   `newerVersion`, `damaged`, `busy`; nothing is changed then.
  public static func open(
    _ home: DataVaultHome, vault: Vault, configuration: Configuration = Configuration()
  ) async throws(VaultedDatabaseError) -> VaultedDatabase {
    let keeper = DatabaseCoordinator(home: home)
    let opened = try await keeper.open(vault, configuration: configuration)
    return VaultedDatabase(opened)
  }

  init(_ opened: OpenedDatabase) {
    pool = opened.pool
    discardedLogFrameCount = opened.discardedLogFrameCount
  }

  /// Ends all connections and wipes the key.
  ///
  /// Where nobody else has the database open and no damage was met, its log is brought into it and deleted: what is
  /// left is one file.
  ///
  /// - Throws: `busy` while a statement still runs; the database is then still open.
  public func close() throws(VaultedDatabaseError) {
    do {
      try SealedDatabase.close(pool)
    } catch {
      throw VaultedDatabaseError(
        .busy, "the database is still in use", hint: "finish reading and writing, then close",
        underlying: error)
    }
  }
}

extension VaultedDatabase {
  /// Moves the messaging vault from the publicly known standard credentials to the user's own, and
  /// everything under it to new keys: the vault key, the content key and, where there is a
  /// database, its key too, by sealing it anew.
  ///
  /// A vault that does not exist is made, under the user's credentials alone. On return all of it
  /// is durable, and nothing on disk is under a key that the standard credentials ever opened.
  ///
  /// - Throws: `alreadySecured`; `busy` while somebody has the database open, with nothing changed;
  ///   `databaseMissing`, `databaseMismatch`, `keyMissing` as when opening.
  public static func secure(
    _ home: DataVaultHome, with credentials: borrowing Credentials
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).secure(with: credentials)
  }

  /// Retires, to a side name, a messaging vault that an earlier installation left: one that is
  /// bound to a database that is not there.
  ///
  /// Only the application or an operator can know that this is a first run: an unmounted volume
  /// looks the same.
  ///
  /// - Returns: the side name, or nil when there was nothing to clean up.
  /// - Throws: when the vault or the database's directory cannot be read; nothing is changed then.
  @discardableResult
  public static func cleanUpFirstRun(
    _ home: DataVaultHome
  ) async throws(VaultedDatabaseError) -> String? {
    try await DatabaseCoordinator(home: home).cleanUpFirstRun()
  }

  /// Deletes a vault of this home, without its password.
  ///
  /// - Parameter force: also when the vault's database exists, which nothing opens afterwards.
  /// - Throws: `databaseStillExists` unless forced; `busy` while somebody opens or changes the
  ///   messaging database.
  public static func deleteVault(
    _ id: VaultID, of home: DataVaultHome, force: Bool = false
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).deleteVault(id, force: force)
  }
}

extension VaultedDatabase {
  /// Seals the home's database under a new random key, and makes the vault keep that one alone.
  ///
  /// Everybody must have closed the database, in every process. On return all of it is durable, and
  /// the former key is gone from the vault. Killed between any two steps, the next opening finishes
  /// what the vault had already stored.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault, unlocked.
  ///   - progress: told of the pages sealed, after each mebibyte and at the end; on a thread of the
  ///     change's own.
  /// - Throws: `busy` while others hold the database; `vaultLocked`, `databaseMissing`,
  ///   `databaseMismatch`; `readOnly`, `diskFull`, `damaged` when it cannot be copied: vault and
  ///   database are as they were then.
  public static func changeKey(
    of home: DataVaultHome, vault: Vault,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).changeKey(of: vault, progress: progress)
  }
}

extension VaultedDatabase {
  /// Opens the home's database, as ``open(_:vault:configuration:)`` does, and refuses one that is an older
  /// copy of itself.
  ///
  /// - Throws: `rolledBack` when the database does not know the anchor of its vault; neither file is
  ///   changed then.
  package static func open(
    _ home: DataVaultHome, vault: Vault, configuration: Configuration = Configuration(),
    ledger: any AnchorStorage
  ) async throws(VaultedDatabaseError) -> VaultedDatabase {
    let keeper = DatabaseCoordinator(home: home)
    let opened = try await keeper.open(vault, configuration: configuration, ledger: ledger)
    return VaultedDatabase(opened)
  }

  /// Marks how far the database has come: a new anchor is committed, durably, and then stored in the
  /// vault.
  ///
  /// - Throws: `vaultLocked`, `vault`, `busy`, `diskFull` and the like; the anchor before is as good
  ///   as it was.
  package func recordAnchor(
    of home: DataVaultHome, vault: Vault, ledger: any AnchorStorage
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).recordAnchor(of: vault, in: pool, ledger)
  }

  /// Accepts a database that opening refuses as `rolledBack`: what it has lost is lost.
  ///
  /// - Returns: nil when there is nothing to accept.
  /// - Throws: as ``open(_:vault:configuration:)``.
  package static func acceptRollback(
    of home: DataVaultHome, vault: Vault, ledger: any AnchorStorage
  ) async throws(VaultedDatabaseError) -> AcceptedRollback? {
    try await DatabaseCoordinator(home: home).acceptRollback(of: vault, ledger)
  }
}

/// What became of a damaged database.
package struct SalvagedDatabase<Mending: Sendable>: Sendable {
  /// Where the damaged one lies now, under the vault's key as before.
  package let damagedPath: FilePath
  /// What was copied; nil when an earlier salvage was only finished.
  package let pages: SalvageReport?
  /// What the damaged one knew of its vault's anchor; nil when an earlier salvage was only finished.
  package let anchor: AnchorState?
  /// What came of mending its rows; nil when an earlier salvage was only finished.
  package let rows: Mending?
}

/// What verifying a database and its rows has found.
package struct VerifiedDatabase<Finding> {
  /// Pages and log.
  package let pages: VerificationReport
  /// What the database knows of its vault's anchor.
  package let anchor: AnchorState
  /// What was found in its rows; nil where the pages are not clean.
  package let rows: Finding?
}

extension VerifiedDatabase: Sendable where Finding: Sendable {}

extension VaultedDatabase {
  /// Reads every page and the log of the home's database, compares it with the vault's anchor, and, where the
  /// pages are clean, has its rows examined.
  ///
  /// Nothing is changed, but that an interrupted salvage is finished. Nobody may have the database open
  /// meanwhile.
  ///
  /// - Throws: `busy`, `databaseMissing`, `databaseMismatch`, `plainDatabase`, `newerVersion`,
  ///   `vaultLocked`.
  package static func verify<Finding: Sendable>(
    _ home: DataVaultHome, vault: Vault, ledger: any AnchorStorage, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    examine: @escaping @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedDatabase<Finding> {
    try await DatabaseCoordinator(home: home).verify(
      of: vault, ledger: ledger, checksContents: checksContents, progress: progress, examine)
  }

  /// Puts a new database with all that is whole in the place of a damaged one, and binds the vault to
  /// it: `docs/explanation/vaulted-database.md`, "Salvage".
  ///
  /// - Parameters:
  ///   - acceptsRollback: whether to go on where the damaged one lacks the vault's anchor.
  ///   - mend: makes the new database's rows agree with each other before it is used.
  /// - Throws: as ``verify(_:vault:ledger:checksContents:progress:examine:)``; `rolledBack`; `diskFull` and
  ///   the like: the damaged one is where it was then.
  package static func salvage<Mending: Sendable>(
    _ home: DataVaultHome, vault: Vault, ledger: any AnchorStorage, acceptsRollback: Bool = false,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    mend: @escaping @Sendable (SalvageReport, DatabasePool) throws -> Mending
  ) async throws(VaultedDatabaseError) -> SalvagedDatabase<Mending> {
    try await DatabaseCoordinator(home: home).salvage(
      of: vault, ledger: ledger, acceptsRollback: acceptsRollback, progress: progress, mend)
  }
}
