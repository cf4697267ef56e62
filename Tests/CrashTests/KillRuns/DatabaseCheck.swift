import DataVault
import Foundation
import GRDB
import SystemPackage
import TestSupport
import VaultedDatabase

/// Opens the database as an engine does and checks all of it.
enum DatabaseCheck {
  /// The findings of `integrity_check`, and the first page that does not open.
  static func findings(home: URL) async throws -> [String] {
    let home = DataVaultHome(FilePath(home.path))
    let vault = try await Vault.get(.messaging, in: home.store)
    try await vault.unlock(with: credentials(CommandLineTool.password))
    let database = try await VaultedDatabase.open(home, vault: vault)
    let findings = try await database.pool.read { db in
      try String.fetchAll(db, sql: "PRAGMA integrity_check").filter { $0 != "ok" }
        + Row.fetchAll(db, sql: "PRAGMA foreign_key_check").map { "foreign key: \($0)" }
    }
    // A backup reads every page, also those of the free list.
    try database.pool.backup(to: DatabaseQueue())
    try database.close()
    await vault.lock()
    return findings
  }
}
