public import VaultCrypto

/// Additional slots, each of which opens the vault by itself, and their removal.
///
/// Removing a slot does not replace keys. A person who opened the vault with the slot, or has an
/// older copy of its file, can still have the content key. ``rotate(keeping:dropping:)`` replaces
/// it.
extension Vault {
  /// Adds a recovery code to the unlocked vault; durable on return.
  ///
  /// The code is not stored: show it once, on paper.
  ///
  /// - Parameter name: `[a-z0-9][a-z0-9_-]{0,31}`, unique in the vault; it is not secret.
  /// - Throws: `locked`; `slotExists`, `tooManySlots` beyond 16, `invalidArgument` for an invalid
  ///   name; `notSecured` under the standard credentials, because securing drops all slots;
  ///   `writeFailed`; the errors of reading.
  public func addRecoveryCode(named name: String) throws(VaultError) -> RecoveryCode {
    let code = try RecoveryCode.random(from: parameters.random)
    do throws(VaultError) {
      try addRecoveryCode(code, named: name)
    } catch {
      throw error.isUnconfirmed ? .lostCode(name, id, error) : error
    }
    return code
  }

  /// As ``addRecoveryCode(named:)``, with a given code.
  package func addRecoveryCode(
    _ code: borrowing RecoveryCode, named name: String
  ) throws(VaultError) {
    let wrappingKey = try withCrypto { () throws(CryptoError) in try code.wrappingKey() }
    try addSlot(RecoveryCodeSlot(named: name), name, with: wrappingKey)
  }

  /// Adds a key file to the unlocked vault; durable on return.
  ///
  /// - Parameters:
  ///   - name: as in ``addRecoveryCode(named:)``.
  ///   - key: the file's contents: exactly 32 random bytes.
  /// - Throws: `keyFileLength`; the errors of ``addRecoveryCode(named:)``.
  public func addKeyFile(
    named name: String, key: borrowing SecretBytes
  ) throws(VaultError) {
    try KeyFileSlot.requireKey(key)
    try addSlot(KeyFileSlot(named: name), name, with: key)
  }

  /// Adds a key file in place of the key file that has its name; durable on return.
  ///
  /// - Throws: as ``addKeyFile(named:key:)``; `slotExists` only for another kind of slot.
  package func replaceKeyFile(
    named name: String, key: borrowing SecretBytes
  ) throws(VaultError) {
    try KeyFileSlot.requireKey(key)
    let kind = KeyFileSlot(named: name)
    try addSlot(kind, name, with: key, replacing: kind.identifier)
  }

  /// Whether a secret opens the slot with this identifier.
  ///
  /// It is no attempt, and is not counted: the secret must be one that cannot be guessed.
  package func opensSlot(
    _ identifier: String, with secret: borrowing VaultSecret
  ) throws(VaultError) -> Bool {
    precondition(secret.kind != .password, "a password is tried by an attempt")
    for slot in try readFile().key.slots where slot.identifier == identifier {
      return try contentKey(of: slot, with: secret) != nil
    }
    return false
  }

  private func addSlot(
    _ kind: any KeySlotKind, _ name: String, with wrappingKey: borrowing SecretBytes,
    replacing replaced: String? = nil
  ) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      draft.key.slots.removeAll { $0.identifier == replaced }
      try draft.requireRoom(forSlot: name)
      let slot = try withCrypto { () throws(CryptoError) in
        try KeySlot(kind, wrapping: draft.contentKey, with: wrappingKey)
      }
      draft.key.slots.append(slot)
    }
  }

  /// Removes a slot; durable on return.
  ///
  /// - Parameter name: a slot's name, or its ``VaultStatus/Slot/identifier``.
  /// - Throws: `locked`, `slotNotFound`; `lastSlot`, because nothing would open the vault again;
  ///   `notSecured`, `writeFailed`; the errors of reading.
  public func removeSlot(named name: String) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      try draft.requireSecured()
      draft.key.slots.remove(at: try draft.key.slotIndex(named: name, of: id))
      guard !draft.key.slots.isEmpty else { throw .lastSlot(id) }
    }
  }

  /// Removes the slot of a recovery code, but none that another caller has added under its name since;
  /// durable on return.
  package func removeSlot(
    named name: String, of code: borrowing RecoveryCode
  ) throws(VaultError) {
    let wrappingKey = try withCrypto { () throws(CryptoError) in try code.wrappingKey() }
    try change { (draft) throws(VaultError) in
      let index = try draft.key.slotIndex(named: name, of: id)
      guard draft.key.slots[index].opens(with: wrappingKey) else { return }
      draft.key.slots.remove(at: index)
      guard !draft.key.slots.isEmpty else { throw .lastSlot(id) }
    }
  }
}

extension VaultDraft {
  /// - Throws: `notSecured`: under the standard credentials the keys are public. Another slot would
  ///   not protect them, and securing the vault would drop it.
  func requireSecured() throws(VaultError) {
    guard clear.isSecured else {
      throw VaultError(
        .notSecured, "vault '\(clear.vaultID)' opens with the publicly known password",
        hint: "set your own password first; that makes new keys and drops all other slots")
    }
  }

  func requireRoom(forSlot name: String) throws(VaultError) {
    try requireSecured()
    guard isSlotName(name.utf8) else {
      throw VaultError(
        .invalidArgument, "invalid slot name: '\(name)'",
        hint: "use 1 to 32 of a-z, 0-9, - and _, and begin with a letter or a digit")
    }
    // A name is unique over all kinds of slots, so that a removal by name is unambiguous.
    let isTaken = key.slots.contains { $0.name == name }
    guard !isTaken, name != VaultStatus.Slot.Kind.password.description else {
      throw VaultError(
        .slotExists, "vault '\(clear.vaultID)' already has a slot '\(name)'",
        hint: "choose another name, or remove that slot first")
    }
    try requireFreeSlot()
  }

  func requireFreeSlot() throws(VaultError) {
    guard key.slots.count < KeyEnvelope.maximumSlotCount else {
      throw VaultError(
        .tooManySlots,
        "vault '\(clear.vaultID)' already has the maximum of \(KeyEnvelope.maximumSlotCount) slots",
        hint: "remove one first")
    }
  }
}

extension KeyEnvelope {
  /// The index of the slot with this identifier, or of the only slot with this name.
  func slotIndex(named name: String, of id: VaultID) throws(VaultError) -> Int {
    if let index = slots.firstIndex(where: { $0.identifier == name }) { return index }
    // Other software can write `recovery:x` beside `keyfile:x`; this software gives no name twice.
    let indices = slots.indices.filter { slots[$0].name == name }
    guard let index = indices.first else {
      throw VaultError(
        .slotNotFound, "slot '\(name)' not found in vault '\(id)'",
        hint: "choose one of: \(identifiers)")
    }
    guard indices.count == 1 else {
      throw VaultError(
        .invalidArgument, "vault '\(id)' has two slots named '\(name)'",
        hint: "use the full name: "
          + indices.map { slots[$0].identifier }.joined(separator: " or "))
    }
    return index
  }

  /// The identifiers of the slots, for messages.
  var identifiers: String { slots.map(\.identifier).joined(separator: ", ") }
}

extension VaultError {
  /// The error for a new recovery code that the caller does not get, and whose slot can exist.
  fileprivate static func lostCode(
    _ name: String, _ id: VaultID, _ error: VaultError
  ) -> VaultError {
    let slot = "recovery:\(name)"
    return VaultError(
      error.code, "\(error.message): vault '\(id)' can have the slot '\(slot)', whose code is lost",
      hint: "run datavault slots remove \(id) \(slot), then add it again",
      underlying: error.underlying)
  }

  static func lastSlot(_ id: VaultID) -> VaultError {
    VaultError(
      .lastSlot, "no slot would be left to open vault '\(id)'",
      hint: "add or keep another slot first"
    )
  }
}

extension Vault {
  /// Raises the cost of the slot that a secret opened to today's default, in one durable write.
  ///
  /// The vault is already open and stays open if this fails. If the store cannot be written, the
  /// next unlock tries again.
  ///
  /// - Parameter key: the key envelope that the secret opened.
  func renewOutdatedSlot(of key: KeyEnvelope, with secret: borrowing VaultSecret) {
    let kind = secret.kind
    let index = key.slots.firstIndex { $0.secretKind == kind && $0.kind.isOutdated(parameters) }
    // A store that cannot be written fails here, before the derivation.
    guard let index, let lock = try? store.lock(id) else { return }
    defer { lock.release() }
    try? rewrapSlot(at: index, of: key, with: secret)
  }

  private func rewrapSlot(
    at index: Int, of key: KeyEnvelope, with secret: borrowing VaultSecret
  ) throws(VaultError) {
    var draft = try withContents { $0.draft() }
    // If the password was changed in the meantime, the old one must not come back.
    guard draft.key == key else { return }
    let slot = try withCrypto { () throws(CryptoError) in
      try key.slots[index].rewrapping(draft.contentKey, with: secret, parameters: parameters)
    }
    guard let slot else { return }
    draft.key.slots[index] = slot
    adopt(try write(draft))
  }
}
