internal import CKeyutils
internal import Glibc
package import SystemPackage
package import VaultCrypto

/// Where sessions are kept: named secrets that all processes of one user see, and that end by
/// themselves.
package protocol SessionKeyring: Sendable {
  /// Keeps a secret under a name, in place of any that it had, for so many seconds; then it is
  /// gone. When this fails, nothing was kept.
  func store(
    _ payload: borrowing SecretBytes, as name: String, wholeSeconds: UInt32
  ) throws(KeyringError)

  /// Looks a name up.
  func find(_ name: String) throws(KeyringError) -> KeyringEntry

  /// The secret of an entry; nil when it is gone, or has not so many bytes.
  func read(_ serial: Int32, byteCount: Int) throws(KeyringError) -> SecretBytes?

  /// Ends an entry at once, for every process; one that is gone already stays gone.
  func revoke(_ serial: Int32) throws(KeyringError)

  /// The entries whose names begin so.
  func serials(withPrefix prefix: String) throws(KeyringError) -> [Int32]
}

/// What a keyring knows of a name.
package enum KeyringEntry: Sendable, Equatable {
  /// Nothing, or not any more.
  case absent
  /// Its time was over not long ago.
  case expired
  case present(serial: Int32)
}

/// A call that the keyring refused.
package struct KeyringError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The call, as it stands in the manual.
  package let call: String
  package let errno: Errno

  package init(_ call: String, _ errno: Errno) {
    self.call = call
    self.errno = errno
  }

  package var description: String { "\(call): \(errno)" }
}

/// The kernel's keyring of this user, user-keyring(7): kept in memory that is never swapped, ended
/// by the kernel itself.
///
/// A process whose session keyring does not lead to the user keyring, as under systemd, may add a
/// key there but neither read it nor set its timeout: what a new key grants, it grants to those who
/// possess it. So a key is made in the thread's own keyring, given its permissions and its timeout
/// there, and only then linked into the user keyring. Its permissions are the owner's alone:
/// possession grants nothing, so that a process of another user which has inherited a way to this
/// keyring, as through sudo, reads nothing.
package struct KernelKeyring: SessionKeyring {
  /// Of all types this one can be read and is never written to a swappable file.
  private static let type = "user"

  package init() {}

  package func store(
    _ payload: borrowing SecretBytes, as name: String, wholeSeconds: UInt32
  ) throws(KeyringError) {
    let before = try find(name)
    let key = unsafe payload.withUnsafeBytes {
      unsafe add_key(Self.type, name, $0.baseAddress, $0.count, KEY_SPEC_THREAD_KEYRING)
    }
    guard key >= 0 else { throw .current("add_key") }
    defer { keyctl_unlink(key, KEY_SPEC_THREAD_KEYRING) }
    do throws(KeyringError) {
      try Self.check(keyctl_setperm(key, key_perm_t(KEY_USR_ALL)), "keyctl_setperm")
      try Self.check(keyctl_set_timeout(key, wholeSeconds), "keyctl_set_timeout")
      try Self.check(keyctl_link(key, KEY_SPEC_USER_KEYRING), "keyctl_link")
    } catch {
      keyctl_revoke(key)
      throw error
    }
    // The link has taken its place; until the kernel collects it, its number would still read it.
    if case .present(let serial) = before { keyctl_revoke(serial) }
  }

  package func find(_ name: String) throws(KeyringError) -> KeyringEntry {
    let serial = unsafe keyctl_search(KEY_SPEC_USER_KEYRING, Self.type, name, 0)
    if serial >= 0 { return .present(serial: Int32(truncatingIfNeeded: serial)) }
    let number = errno
    switch number {
    case ENOKEY, EKEYREVOKED: return .absent
    case EKEYEXPIRED: return .expired
    default: throw KeyringError("keyctl_search", Errno(rawValue: number))
    }
  }

  package func read(_ serial: Int32, byteCount: Int) throws(KeyringError) -> SecretBytes? {
    var count = 0
    var number: Int32 = 0
    let secret = unsafe SecretBytes(byteCount: byteCount) { target in
      count = unsafe keyctl_read(
        serial, target.baseAddress?.assumingMemoryBound(to: CChar.self), target.count)
      if count < 0 { number = errno }
    }
    if count == byteCount { return secret }
    guard count < 0, !Self.isGone(number) else { return nil }
    throw KeyringError("keyctl_read", Errno(rawValue: number))
  }

  package func revoke(_ serial: Int32) throws(KeyringError) {
    if keyctl_revoke(serial) < 0 {
      let number = errno
      guard Self.isGone(number) else {
        throw KeyringError("keyctl_revoke", Errno(rawValue: number))
      }
    }
    // Revoked it is; without the link its name is free at once.
    keyctl_unlink(serial, KEY_SPEC_USER_KEYRING)
  }

  package func serials(withPrefix prefix: String) throws(KeyringError) -> [Int32] {
    try linked().filter { Self.name(of: $0)?.hasPrefix(prefix) == true }
  }

  /// Everything in the user keyring.
  private func linked() throws(KeyringError) -> [Int32] {
    var serials: [Int32] = []
    while true {
      let capacity = serials.count
      let byteCount = unsafe serials.withUnsafeMutableBytes {
        unsafe keyctl_read(
          KEY_SPEC_USER_KEYRING, $0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count)
      }
      guard byteCount >= 0 else { throw .current("keyctl_read") }
      let count = byteCount / MemoryLayout<Int32>.size
      if count <= capacity { return Array(serials.prefix(count)) }
      serials = [Int32](repeating: 0, count: count)
    }
  }

  /// The description of a key of our type; nil for others, and for what may not be looked at.
  private static func name(of serial: Int32) -> String? {
    // type;uid;gid;perm;description
    var bytes = [CChar](repeating: 0, count: 512)
    let count = unsafe bytes.withUnsafeMutableBufferPointer {
      unsafe keyctl_describe(serial, $0.baseAddress, $0.count)
    }
    guard count > 0, count <= bytes.count else { return nil }
    let text = String(
      decoding: bytes.prefix(count - 1).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard text.hasPrefix("\(type);"), let last = text.lastIndex(of: ";") else { return nil }
    return String(text[text.index(after: last)...])
  }

  private static func isGone(_ number: Int32) -> Bool {
    [ENOKEY, EKEYREVOKED, EKEYEXPIRED].contains(number)
  }

  private static func check(_ result: Int, _ call: String) throws(KeyringError) {
    if result < 0 { throw .current(call) }
  }
}

extension KeyringError {
  fileprivate static func current(_ call: String) -> KeyringError {
    KeyringError(call, Errno(rawValue: Glibc.errno))
  }
}
