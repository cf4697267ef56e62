extension Vault {
  /// Makes a vault of an exported one under another id; it comes back unlocked.
  ///
  /// The id is part of what is sealed, so this takes what opens the vault: its contents are sealed
  /// anew, its keys and what opens it stay. Two vaults that keep the key of one database would
  /// disown each other's changes: use one of them from then on.
  ///
  /// A wrong secret counts nowhere: a file outside of any store has no record of attempts, and whoever
  /// has the file can try as often, and anywhere, as its derivation allows.
  ///
  /// - Throws: `alreadyExists` when the store has a vault of this id, which is never replaced; what
  ///   ``unlock(with:)`` throws for the exported vault; what writing a store throws.
  public static func importVault(
    _ exported: ExportedVault, as id: VaultID, with secret: borrowing VaultSecret,
    into store: any VaultStore
  ) async throws(VaultError) -> Vault {
    try await importVault(
      exported, as: id, with: secret, into: store, parameters: VaultParameters())
  }

  package static func importVault(
    _ exported: ExportedVault, as id: VaultID, with secret: borrowing VaultSecret,
    into store: any VaultStore, parameters: VaultParameters
  ) async throws(VaultError) -> Vault {
    let vault = Vault(id: id, store: store, parameters: parameters)
    try await vault.take(exported, with: secret)
    return vault
  }

  private func take(
    _ exported: ExportedVault, with secret: borrowing VaultSecret
  ) throws(VaultError) {
    guard try store.read(id) == nil else { throw .alreadyExists(id, in: store) }
    try requireAcceptableCosts(in: exported.file.key)
    let open = try open(
      exported.file, contentKey: contentKey(of: exported.file.key, with: secret))
    try open.requireUsable(secret, of: exported.id, now: parameters.now())
    var draft = open.draft()
    draft.clear.vaultID = id.rawValue
    try store.prepare()
    let lock = try store.lock(id)
    defer { lock.release() }
    guard try store.read(id) == nil else { throw .alreadyExists(id, in: store) }
    // Attempts on an earlier vault of this name, of which a deletion was interrupted.
    try store.removeAttempts(id)
    adopt(try write(draft))
  }
}
