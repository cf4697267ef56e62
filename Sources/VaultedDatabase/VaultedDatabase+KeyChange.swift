public import DataVault
public import SealedVFS

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
  ///   `foreignDatabase`; `readOnly`, `diskFull`, `damaged` when it cannot be copied: vault and
  ///   database are as they were then.
  public static func changeKey(
    of home: DataVaultHome, vault: Vault,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    try await DatabaseKeeper(home: home).changeKey(of: vault, progress: progress)
  }
}
