package import DataVault
package import GRDB
package import SealedSQLite
package import SealedVFS
package import SystemPackage

/// What became of a damaged database.
package struct SalvagedDatabase<Mending: Sendable>: Sendable {
  /// Where the damaged one lies now, under the vault's key as before.
  package let damagedPath: FilePath
  /// What was copied; nil when an earlier salvage was only finished.
  package let pages: Salvage?
  /// What the damaged one knew of its vault's anchor; nil when an earlier salvage was only finished.
  package let anchor: AnchorState?
  /// What came of mending its rows; nil when an earlier salvage was only finished.
  package let rows: Mending?
}

/// What verifying a database and its rows has found.
package struct VerifiedDatabase<Finding> {
  /// Pages and log.
  package let pages: Verification
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
  /// - Throws: `busy`, `databaseMissing`, `foreignDatabase`, `plainDatabase`, `newerVersion`,
  ///   `vaultLocked`.
  package static func verify<Finding: Sendable>(
    _ home: DataVaultHome, vault: Vault, ledger: any AnchorLedger, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    examine: @escaping @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedDatabase<Finding> {
    try await DatabaseKeeper(home: home).verify(
      of: vault, ledger: ledger, checksContents: checksContents, progress: progress, examine)
  }

  /// Puts a new database with all that is whole in the place of a damaged one, and binds the vault to
  /// it: `docs/vaulted-database.md`, "Salvage".
  ///
  /// - Parameters:
  ///   - acceptsRollback: whether to go on where the damaged one lacks the vault's anchor.
  ///   - mend: makes the new database's rows agree with each other before it is used.
  /// - Throws: as ``verify(_:vault:ledger:checksContents:progress:examine:)``; `rolledBack`; `diskFull` and
  ///   the like: the damaged one is where it was then.
  package static func salvage<Mending: Sendable>(
    _ home: DataVaultHome, vault: Vault, ledger: any AnchorLedger, acceptsRollback: Bool = false,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    mend: @escaping @Sendable (Salvage, DatabasePool) throws -> Mending
  ) async throws(VaultedDatabaseError) -> SalvagedDatabase<Mending> {
    try await DatabaseKeeper(home: home).salvage(
      of: vault, ledger: ledger, acceptsRollback: acceptsRollback, progress: progress, mend)
  }
}
