public import DataVault
public import GRDB
internal import SealedSQLite
internal import Synchronization

/// A sealed database whose key and identity a vault keeps.
///
/// It answers for everything that spans the two files: which database belongs to which vault, how
/// the first one is made, and how both change keys together. The protocols, and what a kill between
/// any two of their steps leaves, are in `docs/vaulted-database.md`.
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
  /// - Throws: `vaultLocked`, `databaseMissing`, `foreignDatabase`, `plainDatabase`,
  ///   `newerVersion`, `damaged`, `busy`; nothing is changed then.
  public static func open(
    _ home: DataVaultHome, vault: Vault, configuration: Configuration = Configuration()
  ) async throws(VaultedDatabaseError) -> VaultedDatabase {
    let keeper = DatabaseKeeper(home: home)
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
