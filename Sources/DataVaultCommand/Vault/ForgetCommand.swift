internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import DesktopKeyring
internal import VaultedDatabase

/// The command `datavault forget VAULT`.
struct ForgetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Remove a vault's key from the desktop's keyring.",
    discussion: """
      Example:
        datavault forget messaging

      The command undoes 'unlock --remember': it removes the vault's slot \
      '\(DesktopKeyring.slotIdentifier)' and its key in the keyring, and says which of the two it \
      found. Without an option that names a secret, the vault opens with that key, otherwise \
      through its session or with its password.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let id = try vault.id()
    let home = try home()
    // A key can outlive its vault.
    let exists = try await Vault.exists(id, in: home.store)
    let removedSlot = exists ? try await removeSlot(of: id, in: home) : false
    let removedKey = try await removeKey(of: id, in: home, afterSlot: removedSlot)
    if !exists, !removedKey { _ = try await Vault.get(id, in: home.store) }
    let result = ForgetReport(vault: id.rawValue, removedSlot: removedSlot, removedKey: removedKey)
    try report.print(result) { result.text }
  }

  /// - Returns: whether the vault had the slot.
  private func removeSlot(of id: VaultID, in home: DataVaultHome) async throws -> Bool {
    let vault = try await Vault.get(id, in: home.store)
    guard
      try await vault.status().slots.contains(where: {
        $0.identifier == DesktopKeyring.slotIdentifier
      })
    else { return false }
    try await open(vault, in: home).removeSlot(named: DesktopKeyring.slotIdentifier)
    return true
  }

  private func open(_ vault: Vault, in home: DataVaultHome) async throws -> Vault {
    if !credentials.areGiven, try await hasUnlocked(vault, in: home) { return vault }
    return try await open(vault.id)
  }

  /// Unlocks a vault with the key in the keyring; returns false if another secret is needed.
  private func hasUnlocked(_ vault: Vault, in home: DataVaultHome) async throws -> Bool {
    do throws(VaultError) {
      try await vault.unlock(with: home.keyring)
      return true
    } catch {
      let allowed: Set<VaultError.Code> = [.keyringUnavailable, .secretUnavailable, .wrongPassword]
      guard allowed.contains(error.code) else { throw error }
      return false
    }
  }

  /// - Returns: whether the keyring had the key.
  private func removeKey(
    of id: VaultID, in home: DataVaultHome, afterSlot removedSlot: Bool
  ) async throws -> Bool {
    do throws(VaultError) {
      return try await home.keyring.removeKey(of: id)
    } catch {
      guard removedSlot else { throw error }
      throw CommandFailure(
        error.exitStatus,
        "vault '\(id)' no longer has a slot for the desktop's keyring, but its key is still there: "
          + error.message,
        hint: "run datavault forget \(id) again, in a desktop session with the keyring unlocked")
    }
  }
}

/// The report of `forget`.
private struct ForgetReport: Encodable {
  let vault: String
  let removedSlot: Bool
  let removedKey: Bool

  var text: String {
    let slot = "slot '\(DesktopKeyring.slotIdentifier)'"
    return switch (removedSlot, removedKey) {
    case (true, true): "removed \(slot) of vault '\(vault)' and its key in the desktop's keyring\n"
    case (true, false):
      "removed \(slot) of vault '\(vault)'; the desktop's keyring had no key of it\n"
    case (false, true):
      "removed the key of vault '\(vault)' in the desktop's keyring; it had no slot\n"
    case (false, false): "vault '\(vault)' has neither \(slot) nor a key in the desktop's keyring\n"
    }
  }
}
