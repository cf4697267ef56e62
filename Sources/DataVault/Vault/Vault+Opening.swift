internal import VaultCrypto

extension Vault {
  /// Opens the vault by any of its slots.
  ///
  /// If the secret is wrong, an unlocked vault stays unlocked and unchanged. A password slot with
  /// fewer iterations than today's default gets the default number, if the store can be written.
  /// Failed attempts with all kinds of secret share one back-off. The policy's rules concern
  /// passwords alone: see ``unlock(with:)-(Credentials)``.
  ///
  /// - Throws: `wrongPassword` for a secret that opens no slot of its kind, `slotNotFound` when the
  ///   vault has no slot of its kind, `keyFileLength`; `tooManyAttempts`, `deletedByRetryLimit`;
  ///   `passwordExpired`, `passwordTooShort` and the other rules; `doesNotExist`, `unreadable`,
  ///   `permissionsTooOpen`, `storeUnavailable`, `storeLocked`; `damaged`, `newerVersion`;
  ///   `writeFailed` when a failed attempt cannot be recorded.
  public func unlock(with secret: borrowing VaultSecret) throws(VaultError) {
    try unlock(with: secret, obeyingPolicy: true)
  }

  /// Opens the vault even with a password that its policy no longer allows, so that the caller can
  /// change it.
  ///
  /// - Throws: the errors of ``unlock(with:)``, except those of the policy.
  package func unlockToChangePassword(
    with secret: borrowing VaultSecret
  ) throws(VaultError) {
    try unlock(with: secret, obeyingPolicy: false)
  }

  private func unlock(
    with secret: borrowing VaultSecret, obeyingPolicy: Bool
  ) throws(VaultError) {
    let opened = try attempt(isStandard: secret.isStandard()) { (file) throws(VaultError) in
      try open(file, contentKey: contentKey(of: file.key, with: secret))
    }
    if obeyingPolicy { try opened.requireUsable(secret, of: id, now: parameters.now()) }
    let key = opened.key
    adopt(opened)
    leaveSessionUnlocked()
    renewOutdatedSlot(of: key, with: secret)
  }

  /// The current file of the store, checked as far as possible without a password.
  func readFile() throws(VaultError) -> VaultFile {
    try parse(try store.existingBytes(of: id))
  }

  func parse(_ bytes: [UInt8]) throws(VaultError) -> VaultFile {
    let file = try VaultFile(bytes, of: id, in: store)
    try requireAcceptableCosts(in: file.key)
    return file
  }

  func open(
    _ file: VaultFile, contentKey: consuming SecretBytes
  ) throws(VaultError) -> OpenVault {
    do throws(FormatFault) {
      return try OpenVault(file, contentKey: contentKey)
    } catch {
      throw .invalidFile(error, id, in: store)
    }
  }

  /// The content key from the first slot that the secret opens.
  ///
  /// - Throws: `wrongPassword` when the secret opens no slot of its kind, `slotNotFound` when there
  ///   is no slot of its kind, `keyFileLength`, `damaged`.
  func contentKey(
    of key: KeyEnvelope, with secret: borrowing VaultSecret
  ) throws(VaultError) -> SecretBytes {
    for slot in key.slots {
      if let contentKey = try contentKey(of: slot, with: secret) {
        lastOpenedSlot = slot.identifier
        return contentKey
      }
    }
    throw .noMatchingSlot(secret.kind, key, id)
  }

  /// The content key that one slot wraps; nil when the secret does not open this slot.
  ///
  /// - Throws: `keyFileLength`.
  func contentKey(
    of slot: KeySlot, with secret: borrowing VaultSecret
  ) throws(VaultError) -> SecretBytes? {
    try secret.requireWhole()
    return try withCrypto { () throws(CryptoError) in try slot.contentKey(with: secret) }
  }

  /// - Throws: `damaged` for a cost that no writer uses, before any derivation.
  func requireAcceptableCosts(in key: KeyEnvelope) throws(VaultError) {
    try converting({ .invalidFile($0, id, in: store) }) { () throws(FormatFault) in
      for slot in key.slots { try slot.kind.requireAcceptableCost(parameters) }
    }
  }
}

extension VaultError {
  /// The error for a secret that opens no slot.
  static func noMatchingSlot(
    _ kind: VaultStatus.Slot.Kind, _ key: KeyEnvelope, _ id: VaultID
  ) -> VaultError {
    guard let slot = key.slots.first(where: { $0.secretKind == kind }) else {
      return VaultError(
        .slotNotFound, "vault '\(id)' has no slot for a \(kind.words)",
        hint: "open it with one of: \(key.identifiers)")
    }
    return type(of: slot.kind).wrongSecret(of: id)
  }
}
