internal import DataVault
internal import FileLayer

extension DatabaseKeeper {
  func cleanUpFirstRun() async throws(VaultedDatabaseError) -> String? {
    do {
      guard try await Vault.exists(.messaging, in: home.store) else { return nil }
      let lock = try takeLock()
      defer { lock.release() }
      let vault = try await Vault.get(
        .messaging, in: home.store, parameters: home.vaultParameters)
      // A database that was salvaged and is not in its place yet is one that is there.
      guard try home.fileSystem.status(of: home.salvagePath) == nil else { return nil }
      // The clear members suffice: the vault stays whole under its side name.
      let binding = OpeningDecision.Binding(try await vault.status().binding)
      let decision = OpeningDecision(binding: binding, database: try lookAtDatabase())
      guard decision == .refuse(.databaseMissing) else { return nil }
      return try await Vault.retire(.messaging, in: home.store)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  func deleteVault(_ id: VaultID, force: Bool) async throws(VaultedDatabaseError) {
    do {
      guard id == .messaging, try await Vault.exists(id, in: home.store) else {
        return try await Vault.delete(id, in: home.store, force: force, databaseExists: false)
      }
      // Nobody may put a database in its place between the look and the deletion of its key.
      let lock = try takeLock()
      defer { lock.release() }
      let databaseExists =
        try lookAtDatabase() != .absent || home.fileSystem.status(of: home.salvagePath) != nil
      try await Vault.delete(id, in: home.store, force: force, databaseExists: databaseExists)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }
}
