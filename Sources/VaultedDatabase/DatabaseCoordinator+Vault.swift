internal import DataVault
internal import FileLayer
internal import SealedVFS

extension DatabaseCoordinator {
  func cleanUpFirstRun() async throws(VaultedDatabaseError) -> String? {
    do {
      guard try await Vault.exists(.messaging, in: home.store) else { return nil }
      return try await locked {
        let vault = try await Vault.get(
          .messaging, in: home.store, parameters: home.vaultParameters)
        // A salvaged database that is not in its place yet counts as existing.
        guard try home.fileSystem.status(of: home.salvagePath) == nil else { return nil }
        // The clear members suffice, as the vault stays intact under its new name.
        let binding = OpeningDecision.Binding(try await vault.status().binding)
        let decision = OpeningDecision(binding: binding, database: try inspectDatabase())
        guard decision == .refuse(.databaseMissing) else { return nil }
        return try await Vault.retire(.messaging, in: home.store)
      }
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  func deleteVault(_ id: VaultID, force: Bool) async throws(VaultedDatabaseError) {
    do {
      guard try await canKeepOnlyKey(id) else {
        return try await Vault.delete(id, in: home.store, force: force, databaseExists: false)
      }
      // The lock keeps other processes from making a database between the check and the deletion of
      // its key.
      try await locked {
        let databaseExists =
          try inspectDatabase() != .absent || home.fileSystem.status(of: home.salvagePath) != nil
        try await Vault.delete(id, in: home.store, force: force, databaseExists: databaseExists)
      }
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Whether a vault can keep the only key of the database: the messaging vault, or a copy of it under
  /// another name while the messaging vault is missing, damaged or another database's.
  private func canKeepOnlyKey(_ id: VaultID) async throws -> Bool {
    if id == .messaging { return try await Vault.exists(id, in: home.store) }
    guard let copy = try? await Vault.get(id, in: home.store).status().binding else { return false }
    let messaging = try? await Vault.get(.messaging, in: home.store).status().binding
    if case .sealed(let header)? = try? SealedVFS.inspect(home.databasePath, over: home.baseVFS) {
      return header.fileID == copy.databaseID && header.fileID != messaging?.databaseID
    }
    return messaging == nil
  }
}
