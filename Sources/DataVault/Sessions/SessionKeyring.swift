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
