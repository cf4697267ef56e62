internal import VaultCrypto

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
