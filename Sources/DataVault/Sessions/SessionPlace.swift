internal import FileLayer
internal import VaultCrypto

/// Where one vault's session is, whether there is one or not.
struct SessionPlace: Sendable {
  /// What the names of all sessions begin with.
  static let prefix = "datavault:"

  let keyring: any SessionKeyring
  /// Time since boot.
  let now: @Sendable () -> Duration
  /// `datavault:`, the vault's id, `:` and 32 hexadecimal digits of SHA-256 of its place: the
  /// user's own processes see it in `/proc/keys`.
  let name: String

  /// - Parameter identity: as the store names the vault to all processes.
  init(
    _ id: VaultID, identity: String, parameters: VaultParameters
  ) throws(CryptoError) {
    let digest = try SHA256.digest(unsafe Array(identity.utf8).span.bytes)
    let digits = digest.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    name = "\(Self.prefix)\(id):\(digits.joined())"
    keyring = parameters.sessionKeyring
    now = parameters.sinceBoot
  }

  /// Keeps a content key here until a time span is over.
  ///
  /// - Returns: when that is, since boot.
  func open(
    with contentKey: borrowing SecretBytes, for duration: Duration
  ) throws(KeyringError) -> Duration {
    let deadline = now() + duration
    // The kernel counts whole seconds; the payload's deadline is exact.
    let (seconds, attoseconds) = duration.components
    let payload = SessionPayload(deadline: deadline, contentKey: contentKey.copy())
    try keyring.store(
      payload.bytes(), as: name,
      wholeSeconds: UInt32(clamping: max(1, seconds + (attoseconds > 0 ? 1 : 0))))
    return deadline
  }

  /// The live session here, if there is one.
  func find() throws(KeyringError) -> LiveSession? {
    guard case .present(let serial) = try keyring.find(name),
      let payload = try payload(of: serial), now() < payload.deadline
    else { return nil }
    return LiveSession(
      key: SessionKey(serial: serial, deadline: payload.deadline),
      contentKey: payload.contentKey.copy())
  }

  /// Ends the session here.
  ///
  /// - Returns: whether there was one.
  func end() throws(KeyringError) -> Bool {
    guard case .present(let serial) = try keyring.find(name) else { return false }
    try keyring.revoke(serial)
    return true
  }

  /// What has become of a session that was found here.
  ///
  /// A keyring that does not answer is asked again: nothing is known until the deadline.
  func look(at key: SessionKey) -> SessionState {
    do throws(KeyringError) {
      let entry = try keyring.find(name)
      if case .present(let serial) = entry, serial != key.serial {
        // Somebody has unlocked the vault again.
        guard let payload = try payload(of: serial) else { return .over(.ended) }
        let renewed = SessionKey(serial: serial, deadline: payload.deadline)
        return SessionState(entry, key: renewed, now: now())
      }
      return SessionState(entry, key: key, now: now())
    } catch {
      return now() < key.deadline ? .live(key) : .over(.expired)
    }
  }

  private func payload(of serial: Int32) throws(KeyringError) -> SessionPayload? {
    guard let bytes = try keyring.read(serial, byteCount: SessionPayload.byteCount) else {
      return nil
    }
    return SessionPayload(parsing: bytes)
  }
}

/// What opens a vault, as a session gave it.
struct LiveSession: ~Copyable {
  let key: SessionKey
  let contentKey: SecretBytes
}

/// Which key of the keyring, and until when, since boot.
package struct SessionKey: Sendable, Equatable {
  let serial: Int32
  let deadline: Duration

  package init(serial: Int32, deadline: Duration) {
    self.serial = serial
    self.deadline = deadline
  }
}
