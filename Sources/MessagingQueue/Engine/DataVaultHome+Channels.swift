package import DataVault
internal import GRDB
package import VaultedDatabase

extension DataVaultHome {
  /// The names of the queue's channels, in ascending order, read without an engine.
  ///
  /// It makes and changes no file, and waits for no lock: for a shell that completes a name.
  ///
  /// - Parameter vault: the messaging vault, unlocked.
  package func channelNames(vault: Vault) async throws -> [String] {
    try await readUnchanged(vault: vault) { db in
      try String.fetchAll(db, sql: "SELECT name FROM channel ORDER BY name")
    }
  }
}
