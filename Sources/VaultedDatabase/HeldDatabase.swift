package import DataVault
internal import GRDB
internal import SealedSQLite
package import SystemPackage
package import VaultCrypto

/// A home's database that this process holds open while another program reads it.
///
/// As long as this object exists, securing the home, changing its key and salvaging it are `busy`.
package final class HeldDatabase: Sendable {
  /// The path of the database.
  package let path: FilePath
  private let key: SecretBytes
  private let reader: DatabaseQueue

  init(path: FilePath, key: consuming SecretBytes, reader: DatabaseQueue) {
    self.path = path
    self.key = key
    self.reader = reader
  }

  /// Lends the 32 bytes of the database's key.
  package func withKey<R, E: Error>(
    _ body: (borrowing SecretBytes) throws(E) -> R
  ) throws(E) -> R {
    try body(key)
  }

  // If there was no log before, SQLite removes the empty one that it has made.
  deinit { try? reader.close() }
}

extension DatabaseCoordinator {
  /// Opens the home's database for reading, and holds it.
  ///
  /// The call changes neither the database nor its log. It does not continue a change of key that was interrupted.
  ///
  /// - Throws: `databaseMissing` before an engine has made it; `rolledBack`, `damaged`, `busy`, `vaultLocked` and the
  ///   other errors of opening.
  package func hold(
    _ vault: Vault, anchorStorage: any AnchorStorage
  ) async throws(VaultedDatabaseError) -> HeldDatabase {
    try await locked {
      guard try await !isSalvageUnfinished(of: vault) else { throw unfinishedSalvage }
      let fileID = try await requireOwnDatabase(of: vault)
      try await requireAnchor(of: vault, in: anchorStorage, busyMode: Self.connectionBusyMode)
      let keys = try await vault.databaseKeys()
      return try keys.withFitting(home, fileID: fileID) { key in
        var configuration = Configuration()
        configuration.busyMode = Self.connectionBusyMode
        configuration.allowsUnsafeTransactions = true
        let reader = try SealedDatabase.openReader(
          at: home.databasePath, key: key, configuration: configuration, over: home.baseVFS,
          removesEmptyLog: try !hasLogOrJournal())
        try reader.inDatabase { db in
          // An idle connection holds a database with a log. A restored one has none before an engine has started.
          if try String.fetchOne(db, sql: "PRAGMA journal_mode") != "wal" {
            try db.execute(sql: "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1")
          }
        }
        return HeldDatabase(path: home.databasePath, key: key.copy(), reader: reader)
      }
    }
  }
}
