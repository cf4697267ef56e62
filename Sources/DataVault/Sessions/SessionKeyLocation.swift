internal import FileLayer
internal import Glibc
public import SystemPackage
internal import VaultCrypto

/// The location of one vault's session, whether a session exists or not.
struct SessionKeyLocation: Sendable {
  /// The prefix of all session names.
  static let prefix = "datavault:"

  let keyrings: SessionKeyrings
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
    keyrings = SessionKeyrings(parameters)
    place = store.processDirectory?.string
    now = parameters.sinceBoot
  }

  /// Stores the payload of a session in the kernel for a limited time.
  func open(_ payload: borrowing SecretBytes, for duration: Duration) throws(VaultError) {
    // The kernel counts whole seconds; the payload's deadline is exact.
    let (seconds, attoseconds) = duration.components
    try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) in
      try keyrings.kernel.store(
        payload, as: name,
        wholeSeconds: UInt32(clamping: max(1, seconds + (attoseconds > 0 ? 1 : 0))))
    }
  }

  /// Whether the kernel holds the session with this payload.
  func kernelHolds(_ payload: borrowing SecretBytes) -> Bool {
    guard let entry = try? keyrings.kernel.find(name), case .present(let serial) = entry else {
      return false
    }
    return keyrings.holds(payload, in: .kernel(serial: serial))
  }

  /// How many sessions this process was told of by a socket since it started.
  var toldCount: Int { keyrings.process.toldCount(of: name) }

  /// The sessions here, of which the first counts: at most one of this process and one in the kernel.
  ///
  /// If this process has a socket, by which a session can come, a kernel that refuses holds none.
  func holders() throws(VaultError) -> [SessionHolder] {
    let own = keyrings.process.find(name).map { [SessionHolder.process(serial: $0.serial)] } ?? []
    do throws(KeyringError) {
      guard case .present(let serial) = try keyrings.kernel.find(name) else { return own }
      return own + [.kernel(serial: serial)]
    } catch {
      guard !own.isEmpty || keyrings.process.hasListener(at: place) else {
        throw .sessionsUnavailable(error)
      }
      return own
    }
  }

  /// The session here; nil if there is none or it has expired.
  func find() throws(VaultError) -> LiveSession? {
    for holder in try holders() {
      if let session = try session(of: holder), now() < session.key.deadline { return session }
    }
    return nil
  }

  /// Ends the session here.
  ///
  /// - Returns: whether there was one.
  func end() throws(VaultError) -> Bool {
    let holders = try holders()
    for holder in holders { try revoke(holder) }
    return !holders.isEmpty
  }

  /// Ends each session here that does not open the vault.
  ///
  /// - Returns: whether there was one.
  func end(unlessOpening key: KeyEnvelope?) throws(VaultError) -> Bool {
    var hasEnded = false
    for holder in try holders() {
      guard let session = try session(of: holder) else { continue }
      if key?.opens(with: session.contentKey) == true { continue }
      try revoke(holder)
      hasEnded = true
    }
    return hasEnded
  }

  func revoke(_ holder: SessionHolder) throws(VaultError) {
    try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) in
      try keyrings.revoke(holder)
    }
  }

  func session(of holder: SessionHolder) throws(VaultError) -> LiveSession? {
    let payload = try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) in
      try keyrings.read(holder, byteCount: LiveSession.payloadByteCount)
    }
    guard let payload else { return nil }
    return LiveSession(parsing: payload, of: holder)
  }

  /// The state of a session that was found here.
  ///
  /// If the kernel fails, its session counts as live until its deadline, and the caller asks again.
  func look(at key: SessionKey) -> SessionState {
    if let serial = keyrings.process.find(name)?.serial {
      return state(of: .process(serial: serial), after: key)
    }
    do throws(KeyringError) {
      let entry = try keyrings.kernel.find(name)
      if case .present(let serial) = entry {
        return state(of: .kernel(serial: serial), after: key)
      }
      return SessionState(key.isInKernel ? entry : .absent, key: key, now: now())
    } catch {
      // A session of the process has ended, whatever the kernel says.
      guard key.isInKernel else { return SessionState(.absent, key: key, now: now()) }
      return now() < key.deadline ? .live(key) : .ended(.expired)
    }
  }

  /// The state of what is here now, for a vault that knows an earlier key, or the same.
  private func state(of holder: SessionHolder, after key: SessionKey) -> SessionState {
    if holder == key.holder { return SessionState(.present(serial: 0), key: key, now: now()) }
    do throws(VaultError) {
      // Another unlock has started a new session.
      guard let session = try session(of: holder) else { return .ended(.revoked) }
      return SessionState(.present(serial: 0), key: session.key, now: now())
    } catch {
      return now() < key.deadline ? .live(key) : .ended(.expired)
    }
  }
}

/// What holds a session, and its number there.
package enum SessionHolder: Sendable, Equatable {
  case kernel(serial: Int32)
  /// This process, which has received it by a socket.
  case process(serial: Int32)
}

/// The sessions that this process can reach: those in the kernel, and those that it holds itself.
struct SessionKeyrings: Sendable {
  let kernel: any SessionKeyring
  let process: ProcessKeyring

  init(_ parameters: VaultParameters) {
    kernel = parameters.sessionKeyring
    process = parameters.processKeyring
  }

  func read(_ holder: SessionHolder, byteCount: Int) throws(KeyringError) -> SecretBytes? {
    switch holder {
    case .kernel(let serial): try kernel.read(serial, byteCount: byteCount)
    case .process(let serial): process.read(serial, byteCount: byteCount)
    }
  }

  func revoke(_ holder: SessionHolder) throws(KeyringError) {
    switch holder {
    case .kernel(let serial): try kernel.revoke(serial)
    case .process(let serial): process.revoke(serial)
    }
  }

  func holds(_ payload: borrowing SecretBytes, in holder: SessionHolder) -> Bool {
    guard let stored = try? read(holder, byteCount: payload.byteCount) else { return false }
    return SecretBytes.isEqual(stored, payload)
  }

  /// Ends every session of every vault.
  ///
  /// One that cannot be ended does not prevent the end of the others.
  ///
  /// - Parameter place: ends of the sessions of this process only those that came through the listeners of this
  ///   directory; nil for all.
  /// - Returns: the number of sessions, the refusal of the kernel, and the error of a session that could not be ended.
  func endAll(at place: String?) -> (count: Int, refusal: KeyringError?, failure: KeyringError?) {
    var holders = process.serials(at: place).map { SessionHolder.process(serial: $0) }
    var (refusal, failure): (KeyringError?, KeyringError?)
    do throws(KeyringError) {
      holders += try kernel.serials(withPrefix: SessionKeyLocation.prefix).map {
        .kernel(serial: $0)
      }
    } catch {
      refusal = error
    }
    var count = 0
    for holder in holders {
      do throws(KeyringError) {
        try revoke(holder)
        count += 1
      } catch {
        failure = error
      }
    }
    return (count, refusal, failure)
  }
}

/// A key of the keyring, with its deadline as time since boot.
package struct SessionKey: Sendable, Equatable {
  let holder: SessionHolder
  let deadline: Duration

  package init(_ holder: SessionHolder, deadline: Duration) {
    self.holder = holder
    self.deadline = deadline
  }

  /// Whether the kernel holds the session.
  var isInKernel: Bool {
    if case .kernel = holder { true } else { false }
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
  init?(parsing payload: borrowing SecretBytes, of holder: SessionHolder) {
    guard payload.byteCount == Self.payloadByteCount else { return nil }
    let (version, nanoseconds) = unsafe payload.withUnsafeBytes {
      unsafe ($0[0], UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 1, as: UInt64.self)))
    }
    guard version == Self.version, let nanoseconds = Int64(exactly: nanoseconds) else {
      return nil
    }
    key = SessionKey(holder, deadline: .nanoseconds(nanoseconds))
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
