public import DataVault
public import GRDB
internal import SealedSQLite
public import SealedVFS
internal import Synchronization
package import SystemPackage

/// A sealed database whose key and identity a vault keeps.
///
/// This type is responsible for everything that spans the two files: which database belongs to
/// which vault, how the first one is made, and how both change keys together.
/// `docs/explanation/vaulted-database.md` has the protocols, and what a kill between any two of their steps
/// leaves.
public final class VaultedDatabase: Sendable {
  /// The database, encrypted, in WAL mode, durable at each commit (`synchronous=FULL`).
  public let pool: DatabasePool

  /// Frames at the end of the write-ahead log that the opening left out; usually 0.
  ///
  /// A power cut tore them in the middle of a commit that was never acknowledged, or they were
  /// damaged later. In the second case acknowledged commits are lost. The log alone cannot tell.
  public let discardedLogFrameCount: Int

  /// Opens the home's database with the key that its vault keeps.
  ///
  /// If the vault has no database and none exists, it makes one and binds it to the vault. It first
  /// finishes a creation or a change of key that a crash interrupted. On return the binding is
  /// durable.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault, unlocked.
  ///   - configuration: GRDB's, for the pool; the key is added to it.
  /// - Throws: `vaultLocked`, `databaseMissing`, `databaseMismatch`, `plainDatabase`,
  ///   `newerVersion`, `damaged`, `busy`; nothing is changed then.
  public static func open(
    _ home: DataVaultHome, vault: Vault, configuration: Configuration = Configuration()
  ) async throws(VaultedDatabaseError) -> VaultedDatabase {
    try await DatabaseCoordinator(home: home).open(vault, configuration: configuration)
  }

  init(pool: DatabasePool, discardedLogFrameCount: Int) {
    self.pool = pool
    self.discardedLogFrameCount = discardedLogFrameCount
  }

  /// Closes all connections and wipes the key.
  ///
  /// If no other connection has the database open and no damage was met, the log is copied into the
  /// database and deleted; one file remains.
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
  /// Secures the messaging vault: moves it from the publicly known standard credentials to the
  /// user's own, and everything under it to new keys.
  ///
  /// The vault key, the content key and the database's key are replaced; the database is sealed
  /// again under its new key. If the vault does not exist, it is made under the user's credentials
  /// alone. On return all of it is durable, and nothing on disk is under a key that the standard
  /// credentials ever opened.
  ///
  /// - Throws: `alreadySecured`; `busy` while a process has the database open, with nothing
  ///   changed; `damaged` if a recovery of the log would leave out frames; `databaseMissing`,
  ///   `databaseMismatch`, `keyMissing` as when opening.
  public static func secure(
    _ home: DataVaultHome, with credentials: borrowing Credentials
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).secure(with: credentials, anchorStorage: nil)
  }

  /// Renames a messaging vault that an earlier installation left, if its database is missing.
  ///
  /// Only the application or an operator can know that this is a first run, as an unmounted volume
  /// looks the same.
  ///
  /// - Returns: the new name, or nil if there was nothing to clean up.
  /// - Throws: if the vault or the database's directory cannot be read; nothing is changed then.
  @discardableResult
  public static func cleanUpFirstRun(
    _ home: DataVaultHome
  ) async throws(VaultedDatabaseError) -> String? {
    try await DatabaseCoordinator(home: home).cleanUpFirstRun()
  }

  /// Deletes a vault of this home, without its password.
  ///
  /// - Parameter force: deletes the vault also if its database exists, which then can never be
  ///   opened.
  /// - Throws: `databaseStillExists` unless forced; `busy` while another process opens or changes
  ///   the messaging database.
  public static func deleteVault(
    _ id: VaultID, of home: DataVaultHome, force: Bool = false
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).deleteVault(id, force: force)
  }
}

extension VaultedDatabase {
  /// Seals the home's database under a new random key, and removes the old key from the vault.
  ///
  /// All connections must be closed, in every process. On return all of it is durable. If the
  /// process is killed between any two steps, the next opening finishes what the vault had already
  /// stored.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault, unlocked.
  ///   - progress: called with the pages sealed, after each mebibyte and at the end, on the
  ///     change's own thread.
  /// - Throws: `busy` while another connection holds it; `vaultLocked`, `databaseMissing`,
  ///   `databaseMismatch`; `readOnly`, `diskFull`, `damaged` if it cannot be copied or a recovery of
  ///   the log would leave out frames. After an error
  ///   vault and database are unchanged.
  public static func changeKey(
    of home: DataVaultHome, vault: Vault,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).changeKey(
      of: vault, anchorStorage: nil, progress: progress)
  }
}

extension VaultedDatabase {
  /// Opens the home's database as ``open(_:vault:configuration:)`` does, but refuses an older copy.
  ///
  /// - Throws: `rolledBack` if the database does not have the anchor of its vault; neither file is
  ///   changed then.
  package static func open(
    _ home: DataVaultHome, vault: Vault, configuration: Configuration = Configuration(),
    anchorStorage: any AnchorStorage
  ) async throws(VaultedDatabaseError) -> VaultedDatabase {
    try await DatabaseCoordinator(home: home).open(
      vault, configuration: configuration, anchorStorage: anchorStorage)
  }

  /// Secures vault and database, as ``secure(_:with:)`` does, and refuses a database that is an older copy of
  /// itself.
  ///
  /// - Throws: `rolledBack` if the database lacks the anchor of its vault; neither file is changed.
  package static func secure(
    _ home: DataVaultHome, with credentials: borrowing Credentials,
    anchorStorage: any AnchorStorage
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).secure(
      with: credentials, anchorStorage: anchorStorage)
  }

  /// Changes the database's key, as ``changeKey(of:vault:progress:)`` does, and refuses a database that is an
  /// older copy of itself.
  ///
  /// - Throws: `rolledBack` if the database lacks the anchor of its vault; neither file is changed.
  package static func changeKey(
    of home: DataVaultHome, vault: Vault, anchorStorage: any AnchorStorage,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).changeKey(
      of: vault, anchorStorage: anchorStorage, progress: progress)
  }

  /// Records how far the database has come: commits a new anchor, durably, and then stores it in
  /// the vault.
  ///
  /// - Throws: `vaultLocked`, `vault`, `busy`, `diskFull` and the like; the last anchor is then
  ///   still valid.
  package func recordAnchor(
    of home: DataVaultHome, vault: Vault, anchorStorage: any AnchorStorage
  ) async throws(VaultedDatabaseError) {
    try await DatabaseCoordinator(home: home).recordAnchor(of: vault, in: pool, anchorStorage)
  }

  /// Accepts a database that opening refuses as `rolledBack`; its missing commits are lost.
  ///
  /// - Returns: nil if there is nothing to accept.
  /// - Throws: the errors of ``open(_:vault:configuration:)``.
  package static func acceptRollback(
    of home: DataVaultHome, vault: Vault, anchorStorage: any AnchorStorage
  ) async throws(VaultedDatabaseError) -> AcceptedRollback? {
    try await DatabaseCoordinator(home: home).acceptRollback(of: vault, anchorStorage)
  }
}

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
  /// The result for its rows; nil if the pages are not clean.
  package let rows: Finding?
}

extension VerifiedDatabase: Sendable where Finding: Sendable {}

extension VaultedDatabase {
  /// Reads every page and the log of the home's database, compares it with the vault's anchor, and
  /// examines the rows of clean pages.
  ///
  /// The call only finishes an interrupted salvage and changes nothing else. No process must have
  /// the database open at the same time.
  ///
  /// - Throws: `busy`, `databaseMissing`, `databaseMismatch`, `plainDatabase`, `newerVersion`,
  ///   `vaultLocked`.
  package static func verify<Finding: Sendable>(
    _ home: DataVaultHome, vault: Vault, anchorStorage: any AnchorStorage,
    checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    examine: @escaping @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedDatabase<Finding> {
    try await DatabaseCoordinator(home: home).verify(
      of: vault, anchorStorage: anchorStorage, checksContents: checksContents, progress: progress,
      examine)
  }

  /// Replaces a damaged database with a new one that has everything intact, and binds the vault to
  /// it: `docs/explanation/vaulted-database.md`, "Salvage".
  ///
  /// - Parameters:
  ///   - acceptsRollback: whether to continue if the damaged database lacks the vault's anchor.
  ///   - knownTables: tables that the database must have, by name; their rows are found even where
  ///     the schema is lost.
  ///   - repair: makes the new database's rows consistent before it is used.
  /// - Throws: the errors of ``verify(_:vault:anchorStorage:checksContents:progress:examine:)``;
  ///   `rolledBack`; `diskFull` and the like. After an error the damaged database is still in its
  ///   place.
  package static func salvage<Repair: Sendable>(
    _ home: DataVaultHome, vault: Vault, anchorStorage: any AnchorStorage,
    acceptsRollback: Bool = false, knownTables: [(name: String, sql: String)] = [],
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    repair: @escaping @Sendable (SalvageReport, DatabasePool) throws -> Repair
  ) async throws(VaultedDatabaseError) -> SalvagedDatabase<Repair> {
    try await DatabaseCoordinator(home: home).salvage(
      of: vault, anchorStorage: anchorStorage, acceptsRollback: acceptsRollback,
      knownTables: knownTables, progress: progress, repair)
  }
}
