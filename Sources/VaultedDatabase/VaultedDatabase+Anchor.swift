package import DataVault
package import GRDB

extension VaultedDatabase {
  /// Opens the home's database, as ``open(_:vault:configuration:)`` does, and refuses one that is an older
  /// copy of itself.
  ///
  /// - Throws: `rolledBack` when the database does not know the anchor of its vault; neither file is
  ///   changed then.
  package static func open(
    _ home: DataVaultHome, vault: Vault, configuration: Configuration = Configuration(),
    ledger: any AnchorLedger
  ) async throws(VaultedDatabaseError) -> VaultedDatabase {
    let keeper = DatabaseKeeper(home: home)
    let opened = try await keeper.open(vault, configuration: configuration, ledger: ledger)
    return VaultedDatabase(opened)
  }

  /// Marks how far the database has come: a new anchor is committed, durably, and then stored in the
  /// vault.
  ///
  /// - Throws: `vaultLocked`, `vault`, `busy`, `diskFull` and the like; the anchor before is as good
  ///   as it was.
  package func recordAnchor(
    of home: DataVaultHome, vault: Vault, ledger: any AnchorLedger
  ) async throws(VaultedDatabaseError) {
    try await DatabaseKeeper(home: home).recordAnchor(of: vault, in: pool, ledger)
  }

  /// Accepts a database that opening refuses as `rolledBack`: what it has lost is lost.
  ///
  /// - Returns: nil when there is nothing to accept.
  /// - Throws: as ``open(_:vault:configuration:)``.
  package static func acceptRollback(
    of home: DataVaultHome, vault: Vault, ledger: any AnchorLedger
  ) async throws(VaultedDatabaseError) -> AcceptedRollback? {
    try await DatabaseKeeper(home: home).acceptRollback(of: vault, ledger)
  }
}
