internal import FileLayer
internal import VaultedDatabase

extension DataVaultHome {
  /// Whether there is a file where the messages belong.
  func hasDatabase() throws -> Bool {
    try fileSystem.status(of: databasePath) != nil
  }
}
