internal import FileLayer
internal import Glibc
public import SystemPackage
internal import VaultCrypto

/// The location of one vault's session in the keyring, whether a session exists or not.
struct SessionKeyLocation: Sendable {
  /// The prefix of all session names.
  static let prefix = "datavault:"

  let keyring: JoinedKeyring
  /// The directory of the sockets by which a session can come.
  private let place: String?
  /// The time since boot.
  let now: @Sendable () -> Duration
  /// The key's name: `datavault:`, the vault's id, `:` and 32 hexadecimal digits of the SHA-256 of
  /// the store's identity for the vault.
  ///
  /// The user's own processes can see it in `/proc/keys`.
  let name: String

  /// - Returns: nil for a store that no other process can reach.
  init?(
    of id: VaultID, in store: any VaultStore, parameters: VaultParameters
  ) throws(VaultError) {
    guard let identity = store.sessionIdentity(of: id) else { return nil }
    let digest = try withCrypto { () throws(CryptoError) in
      try SHA256.digest(unsafe Array(identity.utf8).span.bytes)
    }
    name = "\(Self.prefix)\(id):\(Array(digest.prefix(16)).hexadecimal)"
    keyring = JoinedKeyring(parameters)
    place = store.processDirectory?.string
    now = parameters.sinceBoot
  }

  /// Stores the payload of a session in the kernel for a limited time.
  func open(_ payload: borrowing SecretBytes, for duration: Duration) throws(VaultError) {
    // The kernel counts whole seconds; the payload's deadline is exact.
    let (seconds, attoseconds) = duration.components
    try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) in
      try keyring.store(
        payload, as: name,
        wholeSeconds: UInt32(clamping: max(1, seconds + (attoseconds > 0 ? 1 : 0))))
    }
  }

  /// The session here; nil if there is none or it has expired.
  func find() throws(VaultError) -> LiveSession? {
    try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) -> LiveSession? in
      guard case .present(let serial) = try entry(),
        let session = try session(of: serial), now() < session.key.deadline
      else { return nil }
      return session
    }
  }

  /// Ends the session here.
  ///
  /// - Returns: whether there was one.
  func end() throws(VaultError) -> Bool {
    try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) in
      var hasEnded = false
      // One of this process, and one in the kernel.
      for _ in 0..<2 {
        guard case .present(let serial) = try entry() else { break }
        try keyring.revoke(serial)
        hasEnded = true
      }
      return hasEnded
    }
  }

  /// Ends a session that was found here.
  func revoke(_ key: SessionKey) throws(VaultError) {
    try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) in
      try keyring.revoke(key.serial)
    }
  }

  /// The state of a session that was found here.
  ///
  /// If the keyring fails, the session counts as live until its deadline, and the caller asks
  /// again.
  func look(at key: SessionKey) -> SessionState {
    do throws(KeyringError) {
      let entry = key.isOfProcess ? entryWithoutKernel() : try keyring.find(name)
      if case .present(let serial) = entry, serial != key.serial {
        // Another unlock has started a new session.
        guard let session = try session(of: serial) else { return .ended(.revoked) }
        return SessionState(entry, key: session.key, now: now())
      }
      return SessionState(entry, key: key, now: now())
    } catch {
      return now() < key.deadline ? .live(key) : .ended(.expired)
    }
  }

  /// The entry of the name; none if the kernel refuses and this process has a socket, by which a session can come.
  private func entry() throws(KeyringError) -> KeyringEntry {
    do throws(KeyringError) {
      return try keyring.find(name)
    } catch {
      guard keyring.process.hasListener(at: place) else { throw error }
      return .absent
    }
  }

  /// The entry of the name for a vault that was opened by a session of this process.
  ///
  /// The kernel can have a later session. Its refusal, and its memory of the end of another session, say nothing.
  private func entryWithoutKernel() -> KeyringEntry {
    switch try? keyring.find(name) {
    case .present(let serial): .present(serial: serial)
    default: .absent
    }
  }

  private func session(of serial: Int32) throws(KeyringError) -> LiveSession? {
    guard let payload = try keyring.read(serial, byteCount: LiveSession.payloadByteCount) else {
      return nil
    }
    return LiveSession(parsing: payload, of: serial)
  }
}

/// A key of the keyring, with its deadline as time since boot.
package struct SessionKey: Sendable, Equatable {
  let serial: Int32
  let deadline: Duration

  package init(serial: Int32, deadline: Duration) {
    self.serial = serial
    self.deadline = deadline
  }
}

/// A session's key, with the content key that opens the vault.
///
/// The payload of the key has 1 byte version, 8 bytes deadline and 32 bytes content key. The
/// deadline is in nanoseconds on the boot clock, little-endian. A keyring does not survive a reboot,
/// so the payload needs no boot id. Unlike the kernel's own timeout, the deadline is not affected by
/// changes of the date.
struct LiveSession: ~Copyable {
  private static let version: UInt8 = 1
  static let payloadByteCount = 1 + 8 + 32

  let key: SessionKey
  let contentKey: SecretBytes

  /// - Returns: nil for a payload that this version did not write.
  init?(parsing payload: borrowing SecretBytes, of serial: Int32) {
    guard payload.byteCount == Self.payloadByteCount else { return nil }
    let (version, nanoseconds) = unsafe payload.withUnsafeBytes {
      unsafe ($0[0], UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 1, as: UInt64.self)))
    }
    guard version == Self.version, let nanoseconds = Int64(exactly: nanoseconds) else {
      return nil
    }
    key = SessionKey(serial: serial, deadline: .nanoseconds(nanoseconds))
    contentKey = payload.copy(9..<Self.payloadByteCount)
  }

  /// The payload of a new session.
  static func payload(deadline: Duration, contentKey: borrowing SecretBytes) -> SecretBytes {
    let nanoseconds = UInt64(clamping: deadline.wholeNanoseconds).littleEndian
    return unsafe SecretBytes(byteCount: payloadByteCount) { target in
      unsafe target[0] = version
      unsafe target.storeBytes(of: nanoseconds, toByteOffset: 1, as: UInt64.self)
      unsafe contentKey.withUnsafeBytes { key in
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[9...]).copyMemory(from: key)
      }
    }
  }
}

extension FileVaultStore {
  /// The file's path with symbolic links resolved in its directories.
  ///
  /// A home with two paths, such as a systemd service's `/var/lib/private/NAME`, therefore has one
  /// session.
  public func sessionIdentity(of id: VaultID) -> String? {
    directory.resolvingLinks().appending("\(id).vault").string
  }

  /// `<home>/run`.
  public var processDirectory: FilePath? { home.appending("run") }
}
