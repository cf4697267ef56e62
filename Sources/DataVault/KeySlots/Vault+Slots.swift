public import VaultCrypto

/// Further things that open a vault, each alone, and ways to remove them.
///
/// Removing a slot does not make keys new: whoever opened the vault by it, or keeps an older copy
/// of its file, may still hold what the slot wrapped. ``rotate(keeping:dropping:)`` shuts them out.
extension Vault {
  /// Adds a recovery code to the unlocked vault; durable on return.
  ///
  /// The code is nowhere else: show it once, on paper.
  ///
  /// - Parameter name: `[a-z0-9][a-z0-9_-]{0,31}`, of no other slot; it is no secret.
  /// - Throws: `locked`; `slotExists`, `tooManySlots` beyond 16, `invalidArgument` for such a name,
  ///   `notSecured` under the standard credentials, as securing drops all slots; `writeFailed`;
  ///   what reading throws.
  public func addRecoveryCode(named name: String) throws(VaultError) -> RecoveryCode {
    let code = try RecoveryCode.random(from: parameters.random)
    try addRecoveryCode(code, named: name)
    return code
  }

  /// As ``addRecoveryCode(named:)``, with a code that is there already.
  package func addRecoveryCode(
    _ code: borrowing RecoveryCode, named name: String
  ) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      try draft.requireRoom(forSlot: name)
      let slot = try withCrypto { () throws(CryptoError) in
        try KeySlot.recoveryCode(code, named: name, wrapping: draft.contentKey)
      }
      draft.key = draft.key.replacingSlots(draft.key.slots + [slot])
    }
  }

  /// Adds a key file to the unlocked vault; durable on return.
  ///
  /// - Parameters:
  ///   - name: as in ``addRecoveryCode(named:)``.
  ///   - key: the file's contents: exactly 32 bytes, drawn at random.
  /// - Throws: `keyFileLength`; otherwise as ``addRecoveryCode(named:)``.
  public func addKeyFile(
    named name: String, key: borrowing SecretBytes
  ) throws(VaultError) {
    try KeySlot.requireKeyFile(key)
    try change { (draft) throws(VaultError) in
      try draft.requireRoom(forSlot: name)
      let slot = try withCrypto { () throws(CryptoError) in
        try KeySlot.keyFile(key, named: name, wrapping: draft.contentKey)
      }
      draft.key = draft.key.replacingSlots(draft.key.slots + [slot])
    }
  }

  /// Removes what opens the vault under a name; durable on return.
  ///
  /// - Parameter name: a slot's name, or its ``VaultStatus/Slot/identifier``.
  /// - Throws: `locked`, `slotNotFound`; `lastSlot`, as nothing would open the vault again;
  ///   `notSecured`, `writeFailed`; what reading throws.
  public func removeSlot(named name: String) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      try draft.requireSecured()
      var slots = draft.key.slots
      slots.remove(at: try draft.key.slotIndex(named: name, of: id))
      guard !slots.isEmpty else { throw .lastSlot(id) }
      draft.key = draft.key.replacingSlots(slots)
    }
  }
}

extension VaultDraft {
  /// - Throws: `notSecured`: the keys under the standard credentials are known, and another slot
  ///   would neither protect them nor outlive the securing.
  func requireSecured() throws(VaultError) {
    guard clear.isSecured else {
      throw VaultError(
        .notSecured, "vault '\(clear.vaultID)' opens with the publicly known password",
        hint: "set a password of yours first; that makes new keys and drops all other slots")
    }
  }

  func requireRoom(forSlot name: String) throws(VaultError) {
    try requireSecured()
    let count = name.utf8.count
    guard (1...KeySlot.maximumNameByteCount).contains(count), isSlug(name.utf8) else {
      throw VaultError(
        .invalidArgument, "this cannot name a slot: \(name.debugDescription)",
        hint: "1 to 32 of a-z, 0-9, - and _, beginning with a letter or a digit")
    }
    // One name, one slot, of whatever kind: people name what they mean to remove.
    let isTaken = key.slots.contains { $0.shortName == name }
    guard !isTaken, name != KeySlot.passwordName else {
      throw VaultError(
        .slotExists, "vault '\(clear.vaultID)' has a slot '\(name)' already",
        hint: "choose another name, or remove that slot first")
    }
    try requireFreeSlot()
  }

  func requireFreeSlot() throws(VaultError) {
    guard key.slots.count < KeyEnvelope.maximumSlotCount else {
      throw VaultError(
        .tooManySlots,
        "vault '\(clear.vaultID)' has \(KeyEnvelope.maximumSlotCount) slots, which is the most",
        hint: "remove one first")
    }
  }
}

extension KeyEnvelope {
  /// The slot of this identifier, or the only one of this name.
  func slotIndex(named name: String, of id: VaultID) throws(VaultError) -> Int {
    if let index = slots.firstIndex(where: { $0.name == name }) { return index }
    let indices = slots.indices.filter { slots[$0].shortName == name }
    guard let index = indices.first else {
      throw VaultError(
        .slotNotFound, "vault '\(id)' has no slot of this name",
        hint: "it has \(slots.map(\.name).joined(separator: ", "))")
    }
    guard indices.count == 1 else {
      throw VaultError(
        .invalidArgument, "vault '\(id)' has two slots of this name",
        hint: "say which: \(indices.map { slots[$0].name }.joined(separator: " or "))")
    }
    return index
  }
}

extension VaultError {
  static func lastSlot(_ id: VaultID) -> VaultError {
    VaultError(
      .lastSlot, "nothing would open vault '\(id)' any more", hint: "add or keep another slot first"
    )
  }
}

extension Vault {
  /// Gives a password slot that was made with fewer iterations today's default, in one durable
  /// write, now that its password is at hand.
  ///
  /// The vault is open already, and stays so whatever becomes of this: where nothing can be
  /// written, the next unlock tries again.
  ///
  /// - Parameter key: as it was when the secret opened it.
  func raiseIterations(of key: KeyEnvelope, with secret: borrowing VaultSecret) {
    switch secret {
    case .password(let credentials):
      let current = parameters.iterationCount
      guard let index = key.slots.firstIndex(where: { $0.hasFewerIterations(than: current) })
      else { return }
      do throws(VaultError) {
        try rewrapPassword(at: index, of: key, with: credentials)
      } catch {
        return
      }
    default: return
    }
  }

  private func rewrapPassword(
    at index: Int, of key: KeyEnvelope, with credentials: borrowing Credentials
  ) throws(VaultError) {
    // A store that cannot be written says so here, before anything is derived.
    let lock = try store.lock(id)
    defer { lock.release() }
    var draft = try withContents { $0.draft() }
    // A password that was changed meanwhile must not come back.
    guard draft.key == key else { return }
    var slots = key.slots
    slots[index] = try withCrypto { () throws(CryptoError) in
      try KeySlot.password(credentials, wrapping: draft.contentKey, parameters: parameters)
    }
    draft.key = key.replacingSlots(slots)
    adopt(try write(draft))
  }
}

extension KeySlot {
  fileprivate func hasFewerIterations(than current: Int) -> Bool {
    guard case .password(_, let iterationCount) = method else { return false }
    return iterationCount < current
  }
}
