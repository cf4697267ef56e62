public import DataVault
public import GRDB
internal import SealedSQLite
public import SealedVFS
public import SystemPackage

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

  /// The path of the damaged database, if the opening finished a salvage that was interrupted; usually
  /// nil.
  ///
  /// The salvage's own report is lost then, so that rows can be missing.
  public let finishedSalvage: FilePath?

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

  init(pool: DatabasePool, discardedLogFrameCount: Int, finishedSalvage: FilePath?) {
    self.pool = pool
    self.discardedLogFrameCount = discardedLogFrameCount
    self.finishedSalvage = finishedSalvage
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
    try await DatabaseCoordinator(home: home).secure(with: credentials)
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
    try await DatabaseCoordinator(home: home).changeKey(of: vault, progress: progress)
  }
}
