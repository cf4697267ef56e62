internal import CKeyutils
internal import Glibc
package import SystemPackage
package import VaultCrypto

/// A keyring for sessions: named secrets that all processes of one user can read and that expire.
package protocol SessionKeyring: Sendable {
  /// Stores a secret under a name for this many seconds and replaces an earlier secret.
  ///
  /// If it fails, nothing is stored.
  func store(
    _ payload: borrowing SecretBytes, as name: String, wholeSeconds: UInt32
  ) throws(KeyringError)

  /// Looks up a name.
  func find(_ name: String) throws(KeyringError) -> KeyringEntry

  /// The secret of an entry; nil if the entry is gone or has another size.
  func read(_ serial: Int32, byteCount: Int) throws(KeyringError) -> SecretBytes?

  /// Revokes an entry for every process, with immediate effect; an entry that is gone is not an
  /// error.
  func revoke(_ serial: Int32) throws(KeyringError)

  /// The entries whose names have this prefix.
  func serials(withPrefix prefix: String) throws(KeyringError) -> [Int32]
}

/// The result of looking up a name in a keyring.
package enum KeyringEntry: Sendable, Equatable {
  /// No entry, or one that was revoked.
  case absent
  /// The entry expired recently.
  case expired
  case present(serial: Int32)
}

/// A keyring call that failed.
package struct KeyringError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The name of the call, as in its manual page.
  package let call: String
  package let errno: Errno

  package init(_ call: String, _ errno: Errno) {
    self.call = call
    self.errno = errno
  }

  package var description: String { "\(call): \(errno)" }
}

/// The kernel's keyring of this user, user-keyring(7): its memory is never swapped, and the kernel
/// enforces timeouts.
///
/// Under systemd, a process's session keyring does not link to the user keyring. Such a process can
/// add a key there, but can neither read it nor set its timeout, because a new key grants rights to
/// its possessor. A key is therefore made in the thread's own keyring, gets its permissions and its
/// timeout there, and is then linked into the user keyring.
///
/// The permissions are those of the owner alone. Possession grants nothing: a process of another
/// user that inherited a link to this keyring, for example through sudo, reads nothing.
package struct KernelKeyring: SessionKeyring {
  /// The key type that can be read and is never written to a swappable file.
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
    // The link has replaced the old key. Until the kernel collects that key, its serial can still
    // read it.
    if case .present(let serial) = before { keyctl_revoke(serial) }
  }

  package func find(_ name: String) throws(KeyringError) -> KeyringEntry {
    let serial = unsafe keyctl_search(KEY_SPEC_USER_KEYRING, Self.type, name, 0)
    let number = errno
    if serial >= 0 {
      let serial = Int32(truncatingIfNeeded: serial)
      if Self.description(of: serial)?.owner == geteuid() { return .present(serial: serial) }
      // A process of another user that inherited a link to the keyring has put it there.
      keyctl_unlink(serial, KEY_SPEC_USER_KEYRING)
      return .absent
    }
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
      guard Self.isGone(number) || Self.description(of: serial)?.owner != geteuid() else {
        throw KeyringError("keyctl_revoke", Errno(rawValue: number))
      }
    }
    // The key is revoked, or another user's; removing the link frees its name immediately.
    keyctl_unlink(serial, KEY_SPEC_USER_KEYRING)
  }

  package func serials(withPrefix prefix: String) throws(KeyringError) -> [Int32] {
    try linked().filter { Self.description(of: $0)?.name.hasPrefix(prefix) == true }
  }

  /// The serials of all keys in the user keyring.
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

  /// The owner and the name of a key of our type; nil for other keys and for keys that we have no
  /// right to view.
  private static func description(of serial: Int32) -> (owner: uid_t, name: String)? {
    // type;uid;gid;perm;description
    var bytes = [CChar](repeating: 0, count: 512)
    let count = unsafe bytes.withUnsafeMutableBufferPointer {
      unsafe keyctl_describe(serial, $0.baseAddress, $0.count)
    }
    guard count > 0, count <= bytes.count else { return nil }
    let text = String(
      decoding: bytes.prefix(count - 1).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let parts = text.split(separator: ";", maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0] == type, let owner = uid_t(parts[1]) else { return nil }
    return (owner, String(parts[4]))
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
