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
  /// What came of mending its rows, likewise.
  package let rows: Mending?
}

extension VaultedDatabase {
  /// Reads every page and the log of the home's database, and, where they are clean, has its rows
  /// examined.
  ///
  /// Nothing is changed, but that an interrupted salvage is finished. Nobody may have the database open
  /// meanwhile.
  ///
  /// - Throws: `busy`, `databaseMissing`, `foreignDatabase`, `plainDatabase`, `newerVersion`,
  ///   `vaultLocked`.
  package static func verify<Finding: Sendable>(
    _ home: DataVaultHome, vault: Vault, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    examine: @escaping @Sendable (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> (pages: Verification, rows: Finding?) {
    try await DatabaseKeeper(home: home).verify(
      of: vault, checksContents: checksContents, progress: progress, examine)
  }

  /// Puts a new database with all that is whole in the place of a damaged one, and binds the vault to
  /// it: `docs/vaulted-database.md`, "Salvage".
  ///
  /// - Parameter mend: makes the new database's rows agree with each other before it is used.
  /// - Throws: as ``verify(_:vault:checksContents:progress:examine:)``; `diskFull` and the like: the
  ///   damaged one is where it was then.
  package static func salvage<Mending: Sendable>(
    _ home: DataVaultHome, vault: Vault,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in },
    mend: @escaping @Sendable (Salvage, DatabasePool) throws -> Mending
  ) async throws(VaultedDatabaseError) -> SalvagedDatabase<Mending> {
    try await DatabaseKeeper(home: home).salvage(of: vault, progress: progress, mend)
  }
}
