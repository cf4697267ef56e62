internal import DataVault
internal import VaultedDatabase

/// Opens vaults for commands, by one rule: a source that was named is used and nothing in its
/// place; without one, a secured vault opens through its session or asks at the terminal, and only
/// one that is not secured opens with the publicly known credentials.
struct VaultAccess {
  let home: DataVaultHome
  let credentials: CredentialOptions
  /// Whether `datavault unlock` may stand in for the password.
  var usesSession = true

  /// The vault, unlocked.
  func open(_ id: VaultID) async throws -> Vault {
    let vault = try await Vault.get(id, in: home.store)
    if credentials.areGiven {
      try await vault.unlock(with: credentials.read(for: id))
      return vault
    }
    let status = try await vault.status()
    if status.isSecured {
      if usesSession, try await vault.unlockWithSession() { return vault }
      guard status.slots.contains(where: { $0.kind == .password }) else {
        throw CommandFailure(
          .notPermitted, "vault \(id) has no password to ask for",
          hint: "give --recovery-code-file FILE or --slot-key-file FILE")
      }
      try await vault.unlock(with: credentials.read(for: id))
      return vault
    }
    try await vault.unlock(with: .standard)
    let hint =
      id == .messaging
      ? "run datavault secure" : "run datavault change-password \(id)"
    StandardError.warn(
      "vault \(id) is not secured: it opens with the publicly known password; \(hint)")
    return vault
  }
}
