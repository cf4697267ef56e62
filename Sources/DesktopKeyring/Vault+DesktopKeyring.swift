public import DataVault
internal import VaultCrypto

/// A vault that the desktop's keyring opens.
extension Vault {
  /// Makes a key for the unlocked vault's slot ``DesktopKeyring/slotName`` and stores it in the keyring.
  ///
  /// The slot is durable on return. A key in the keyring that opens the slot stays; one that does not is replaced. If
  /// the process ends in between, the keyring's new key opens nothing, and the next call replaces it.
  ///
  /// - Throws: `slotExists` for a slot of that name whose key this keyring does not have; `keyringUnavailable`,
  ///   `keyringLocked`; the errors of ``addKeyFile(named:key:)``.
  public func remember(in keyring: DesktopKeyring) async throws(VaultError) {
    let slots = try status().slots
    let hasSlot = slots.contains { $0.identifier == DesktopKeyring.slotIdentifier }
    if let other = slots.first(where: { $0.name == DesktopKeyring.slotName }), !hasSlot {
      throw VaultError(
        .slotExists, "another slot of vault '\(id)' has the keyring's name: '\(other.identifier)'",
        hint:
          "remove it, or add it again under another name: datavault slots remove \(id) \(other.identifier)"
      )
    }
    if hasSlot, try await keyring.hasNoKey(of: id) {
      throw VaultError(
        .slotExists,
        "vault '\(id)' has a slot '\(DesktopKeyring.slotName)' whose key is not in this keyring",
        hint: "it can belong to another computer; to remove it, run datavault forget \(id)")
    }
    if hasSlot, (try? await secret(in: keyring)) != nil { return }
    let key = SecretBytes.random(byteCount: HexadecimalKey.keyByteCount)
    // The keyring first: if the user does not unlock it, the vault is unchanged.
    try await keyring.setKey(key, of: id)
    try replaceKeyFile(named: DesktopKeyring.slotName, key: key)
  }

  /// Opens the vault with the key in the keyring.
  ///
  /// - Throws: the errors of ``secret(in:)`` and ``unlock(with:)-(VaultSecret)``.
  public func unlock(with keyring: DesktopKeyring) async throws(VaultError) {
    let secret = try await secret(in: keyring)
    try unlock(with: secret)
  }

  /// The key in the keyring, which opens this vault.
  ///
  /// A key that does not open the vault counts as no attempt: it cannot be guessed.
  ///
  /// - Throws: `secretUnavailable` if the keyring has no key; `slotNotFound`, `wrongPassword` for a key of an earlier
  ///   slot; `keyringUnavailable`, `keyringLocked`; the errors of ``status()``.
  public func secret(in keyring: DesktopKeyring) async throws(VaultError) -> VaultSecret {
    let secret = try await keyring.secret(of: id)
    let remember =
      "open it with its password and store a new key: datavault unlock \(id) --remember"
    guard try status().slots.contains(where: { $0.identifier == DesktopKeyring.slotIdentifier })
    else {
      throw VaultError(
        .slotNotFound,
        "vault '\(id)' no longer has the slot '\(DesktopKeyring.slotIdentifier)' of the key in the desktop's keyring",
        hint: remember)
    }
    guard try opensSlot(DesktopKeyring.slotIdentifier, with: secret) else {
      throw VaultError(
        .wrongPassword, "the key in the desktop's keyring does not open vault '\(id)'",
        hint: remember)
    }
    return secret
  }
}

extension DesktopKeyring {
  fileprivate func hasNoKey(of id: VaultID) throws(VaultError) -> Bool {
    do throws(VaultError) {
      return try key(of: id) == nil
    } catch {
      // An item without a key is one that an interrupted call has left.
      guard error.code == .secretUnavailable else { throw error }
      return false
    }
  }
}
