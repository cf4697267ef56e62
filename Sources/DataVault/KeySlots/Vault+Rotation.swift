internal import VaultCrypto

extension Vault {
  /// Replaces the vault key and the content key in one durable write; the vault stays unlocked.
  ///
  /// The old keys (from a removed slot, a session, or an older copy of the file) open nothing that
  /// is written from now on. Other objects and processes that have the vault open are locked out
  /// until they unlock it again.
  ///
  /// The keys of a bound database are contents and do not depend on the vault key, so they stay. A
  /// holder of the old keys can have read them; change the database's key too where that matters.
  /// Data is sealed under a new key from now on. The old data keys stay, to open older data.
  ///
  /// - Parameters:
  ///   - secrets: a secret for each slot to keep; one secret can open several slots. A password
  ///     slot gets a new salt and today's iterations.
  ///   - names: the slots to drop, each by name or identifier. Every slot must be either kept or
  ///     dropped. A slot that is named here is dropped even if its secret is given.
  /// - Throws: `locked`; `wrongPassword` for a secret that opens no slot, `slotSecretMissing` for a
  ///   slot neither kept nor dropped, `slotNotFound`, `lastSlot`, `keyFileLength`; `notSecured`,
  ///   `writeFailed`; the errors of reading. After an error the vault is unchanged.
  public func rotate(
    keeping secrets: borrowing VaultSecrets, dropping names: [String] = []
  ) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      try draft.requireSecured()
      var dropped: Set<Int> = []
      for name in names { dropped.insert(try draft.key.slotIndex(named: name, of: id)) }
      let openers = try findOpeners(of: draft.key, among: secrets)
      let contentKey = SecretBytes.random(byteCount: 32, from: parameters.random)
      let vaultKey = SecretBytes.random(byteCount: 32, from: parameters.random)
      var slots: [KeySlot] = []
      for (index, slot) in draft.key.slots.enumerated() where !dropped.contains(index) {
        guard let opener = openers[index],
          let slot = try secrets.withSecret(
            opener,
            { (secret) throws(VaultError) in
              try withCrypto { () throws(CryptoError) in
                try slot.rewrapping(contentKey, with: secret, parameters: parameters)
              }
            })
        else { throw .secretMissing(slot, id) }
        slots.append(slot)
      }
      guard !slots.isEmpty else { throw .lastSlot(id) }
      draft.key = try withCrypto { () throws(CryptoError) in
        try KeyEnvelope(
          sealing: vaultKey, under: contentKey, slots: slots, random: parameters.random)
      }
      draft.contents.dataKeys = try draft.contents.dataKeys.renewed(random: parameters.random)
      draft.contentKey = contentKey
      draft.vaultKey = vaultKey
    }
  }

  /// The index of the secret that opens each slot; nil for a slot that none opens.
  ///
  /// - Throws: `wrongPassword` or `slotNotFound` for a secret that opens no slot.
  private func findOpeners(
    of key: KeyEnvelope, among secrets: borrowing VaultSecrets
  ) throws(VaultError) -> [Int?] {
    var openers = [Int?](repeating: nil, count: key.slots.count)
    for number in 0..<secrets.count {
      try secrets.withSecret(number) { (secret) throws(VaultError) in
        var opensAny = false
        for (index, slot) in key.slots.enumerated() {
          let contentKey = try contentKey(of: slot, with: secret)
          guard contentKey != nil else { continue }
          openers[index] = number
          opensAny = true
        }
        guard opensAny else { throw .noMatchingSlot(secret.kind, key, id) }
      }
    }
    return openers
  }
}

extension VaultError {
  fileprivate static func secretMissing(_ slot: KeySlot, _ id: VaultID) -> VaultError {
    VaultError(
      .slotSecretMissing, "slot '\(slot.identifier)' of vault '\(id)' is neither kept nor dropped",
      hint: "give its secret, or drop it by name")
  }
}
