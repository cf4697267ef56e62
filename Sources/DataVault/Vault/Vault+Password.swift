package import VaultCrypto

extension Vault {
  /// Sets another password for the unlocked vault; durable on return.
  ///
  /// One write rewraps the password slot and re-encrypts the contents. A change away from the
  /// standard credentials also makes new keys, because rewrapping does not protect what a public
  /// password exposed. A bound database then has a pending key.
  ///
  /// A vault that was opened by another slot needs no old password. This replaces a forgotten
  /// password, and adds one to a vault without a password. If the password was changed or removed
  /// after this object opened the vault, the vault must be opened again: who knows only the replaced
  /// password cannot set another.
  ///
  /// - Throws: `locked`, `invalidArgument` for an empty password, `passwordTooShort` and the other
  ///   rules of the policy, `wrongPassword` for a password that was changed since, `keyChangePending`,
  ///   `tooManySlots` when there are 16 other slots,
  ///   `writeFailed`; the errors of reading. After an error the old password still opens the vault.
  public func changePassword(to new: borrowing Credentials) throws(VaultError) {
    try new.requireUsable()
    try change { (draft) throws(VaultError) in
      guard draft.key.passwordSlot == knownPasswordSlot else {
        throw VaultError(
          .wrongPassword,
          "the password slot of vault '\(id)' was changed after the vault was opened",
          hint: "open the vault again, with today's password")
      }
      try draft.contents.policy.check(new, for: .setting, of: id)
      try draft.changePassword(to: new, parameters: parameters)
    }
  }

  /// Sets another password with the help of the current one; a locked vault stays locked.
  ///
  /// The current password can be expired, or break a rule that was set after it. The call counts as
  /// an attempt, as ``unlock(with:)`` does.
  ///
  /// - Throws: `wrongPassword`, `tooManyAttempts`, `deletedByRetryLimit`; the errors of ``changePassword(to:)``
  ///   except `locked`.
  public func changePassword(
    from current: borrowing Credentials, to new: borrowing Credentials
  ) throws(VaultError) {
    try new.requireUsable()
    let wasLocked = isLocked
    let secret = VaultSecret.password(current.copy())
    let written = try attempt(isStandard: secret.isStandard()) {
      (before) throws(VaultError) in
      try self.changePassword(before, from: secret, to: new)
    }
    endSession(unlessOpening: written.key)
    if !wasLocked { adopt(written) }
  }

  /// - Parameter before: the file as read before the lock was taken, because a derivation must not
  ///   hold the lock.
  private func changePassword(
    _ before: VaultFile, from current: borrowing VaultSecret, to new: borrowing Credentials
  ) throws(VaultError) -> OpenVault {
    var contentKey = try contentKey(of: before.key, with: current)
    let lock = try store.lock(id)
    defer { lock.release() }
    let file = try readFile()
    if file.key != before.key {
      // Another process changed the slots before the lock was taken: check the password again.
      contentKey = try self.contentKey(of: file.key, with: current)
    }
    let opened = try open(file, contentKey: contentKey)
    var draft = opened.draft()
    try draft.contents.policy.check(new, for: .setting, of: id)
    try draft.changePassword(to: new, parameters: parameters)
    return try write(draft)
  }

  /// Replaces the standard credentials, in one durable write: new content key, new vault key, new
  /// password slot, and a pending key when a database is bound.
  ///
  /// - Parameter pendingKey: the next key of the database; nil draws a random one.
  /// - Throws: `alreadySecured`, `keyChangePending`; the errors of ``changePassword(to:)``.
  package func secure(
    to new: borrowing Credentials, pendingKey: borrowing SecretBytes? = nil
  ) throws(VaultError) {
    try new.requireUsable()
    guard !new.areStandard() else {
      throw VaultError(
        .invalidArgument, "vault '\(id)' cannot be secured with the standard credentials")
    }
    try change { (draft) throws(VaultError) in
      guard !draft.clear.isSecured else {
        throw VaultError(
          .alreadySecured, "vault '\(id)' is already secured", hint: "change its password instead")
      }
      try draft.contents.policy.check(new, for: .setting, of: id)
      try draft.renewKeys(behind: new, pendingKey: pendingKey, parameters: parameters)
    }
  }
}

extension VaultDraft {
  mutating func changePassword(
    to new: borrowing Credentials, parameters: VaultParameters
  ) throws(VaultError) {
    let willBeSecured = !new.areStandard()
    if willBeSecured && !clear.isSecured {
      return try renewKeys(behind: new, parameters: parameters)
    }
    let index = key.slots.firstIndex { $0.secretKind == .password }
    if index == nil { try requireFreeSlot() }
    let slot = try withCrypto { () throws(CryptoError) in
      try KeySlot.password(new, wrapping: contentKey, parameters: parameters)
    }
    if let index {
      key.slots[index] = slot
    } else {
      key.slots.append(slot)
    }
    clear.isSecured = willBeSecured
    contents.passwordSetAt = parameters.now().wholeSeconds
  }

  /// Replaces every key; afterwards only the new password opens the vault.
  mutating func renewKeys(
    behind new: borrowing Credentials, pendingKey: borrowing SecretBytes? = nil,
    parameters: VaultParameters
  ) throws(VaultError) {
    try contents.databases?.beginKeyChange(
      to: SecretBytes.copy(of: pendingKey)
        ?? SecretBytes.random(byteCount: DatabaseSecrets.keyByteCount, from: parameters.random),
      ofVault: clear.vaultID)
    contents.dataKeys = try contents.dataKeys.renewed(random: parameters.random)
    contentKey = SecretBytes.random(byteCount: 32, from: parameters.random)
    vaultKey = SecretBytes.random(byteCount: 32, from: parameters.random)
    key = try withCrypto { () throws(CryptoError) in
      try KeyEnvelope(
        sealing: vaultKey, under: contentKey,
        slots: [.password(new, wrapping: contentKey, parameters: parameters)],
        random: parameters.random)
    }
    clear.isSecured = !new.areStandard()
    contents.passwordSetAt = parameters.now().wholeSeconds
  }
}
