internal import FileLayer
internal import VaultCrypto

extension VaultKeeper {
  func session(
    of id: VaultID, parameters: VaultParameters
  ) throws(VaultError) -> VaultSession? {
    guard let place = try SessionPlace(of: id, in: store, parameters: parameters) else {
      return nil
    }
    do throws(KeyringError) {
      guard let found = try place.find() else { return nil }
      return VaultSession(id: id, deadline: found.key.deadline, now: place.now)
    } catch {
      throw .sessionsUnavailable(error)
    }
  }

  func endSession(of id: VaultID, parameters: VaultParameters) throws(VaultError) -> Bool {
    guard let place = try SessionPlace(of: id, in: store, parameters: parameters) else {
      return false
    }
    do throws(KeyringError) {
      return try place.end()
    } catch {
      throw .sessionsUnavailable(error)
    }
  }
}

extension VaultKeeper {
  /// Ends the session of a vault that is gone.
  ///
  /// Where the kernel refuses, there is none; and one that stays opens nothing any more.
  func endSessionOfGone(_ id: VaultID, parameters: VaultParameters) {
    _ = try? endSession(of: id, parameters: parameters)
  }
}

extension SessionPlace {
  /// - Returns: nil for a store that no other process reaches.
  init?(
    of id: VaultID, in store: any VaultStore, parameters: VaultParameters
  ) throws(VaultError) {
    guard let identity = store.sessionIdentity(of: id) else { return nil }
    do throws(CryptoError) {
      try self.init(id, identity: identity, parameters: parameters)
    } catch {
      throw .crypto(error)
    }
  }
}
