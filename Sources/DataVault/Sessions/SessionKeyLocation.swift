internal import FileLayer
internal import Glibc
internal import SystemPackage
internal import VaultCrypto

/// Where one vault's session is, whether there is one or not.
struct SessionKeyLocation: Sendable {
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

/// What a session's key holds: 1 byte version, 8 bytes deadline, 32 bytes content key.
///
/// The deadline is in nanoseconds on the boot clock, little endian. A keyring does not outlive the
/// boot, so it needs no boot id; unlike the kernel's own timeout it does not move with the date.
struct SessionPayload: ~Copyable {
  static let version: UInt8 = 1
  static let contentKeyByteCount = 32
  static let byteCount = 1 + 8 + contentKeyByteCount

  let deadline: Duration
  let contentKey: SecretBytes

  init(deadline: Duration, contentKey: consuming SecretBytes) {
    self.deadline = deadline
    self.contentKey = contentKey
  }

  /// - Returns: nil for what this version did not write.
  init?(parsing bytes: borrowing SecretBytes) {
    guard bytes.byteCount == Self.byteCount else { return nil }
    let (version, nanoseconds) = unsafe bytes.withUnsafeBytes {
      unsafe ($0[0], UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 1, as: UInt64.self)))
    }
    guard version == Self.version, let nanoseconds = Int64(exactly: nanoseconds) else {
      return nil
    }
    deadline = .nanoseconds(nanoseconds)
    contentKey = bytes.copy(9..<Self.byteCount)
  }

  /// What is stored.
  borrowing func bytes() -> SecretBytes {
    let nanoseconds = UInt64(clamping: deadline.wholeNanoseconds).littleEndian
    return unsafe SecretBytes(byteCount: Self.byteCount) { target in
      unsafe target[0] = Self.version
      unsafe target.storeBytes(of: nanoseconds, toByteOffset: 1, as: UInt64.self)
      unsafe contentKey.withUnsafeBytes { key in
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[9...]).copyMemory(from: key)
      }
    }
  }
}

extension FileVaultStore {
  /// The file's path without symbolic links above it: a home that is reached by two paths, as a
  /// systemd service's `/var/lib/private/NAME` is, has one session.
  ///
  /// It is the same while the home is not there, because its file system is unmounted: what is there of
  /// the path is resolved, and the rest is as it was given.
  public func sessionIdentity(of id: VaultID) -> String? {
    var there = directory
    var rest = FilePath("\(id).vault")
    while true {
      if let resolved = unsafe realpath(there.isEmpty ? "." : there.string, nil) {
        defer { unsafe free(resolved) }
        return unsafe FilePath(String(cString: resolved)).pushing(rest).string
      }
      guard let name = there.lastComponent else { return location(of: id) }
      there.removeLastComponent()
      rest = FilePath(root: nil, [name]).pushing(rest)
    }
  }
}
