package import DataVault
package import GRDB
internal import SealedSQLite
internal import VaultCrypto

extension DataVaultHome {
  /// Reads the messaging database without any protocol: no file is made or changed, no lock waited for.
  ///
  /// What it reads can be older than the newest commit, and a database in the middle of a change of
  /// key or a recovery is an error. So its result is for display alone, never for a decision.
  ///
  /// - Parameter vault: the messaging vault, unlocked.
  package func readUnchanged<Result>(
    vault: Vault, _ read: (Database) throws -> Result
  ) async throws -> Result {
    let key = try await vault.databaseKeys().current.copy()
    let reader = try SealedDatabase.openUnchanged(at: databasePath, key: key, over: baseVFS)
    return try reader.read(read)
  }
}
