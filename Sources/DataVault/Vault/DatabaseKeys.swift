package import VaultCrypto

/// The keys of the database that a vault is bound to.
package struct DatabaseKeys: ~Copyable, Sendable {
  /// The key that the database is sealed under, 32 bytes.
  package let current: SecretBytes
  /// While a change of key is under way, the key it leads to.
  package let pending: SecretBytes?

  /// Whether a change of key is under way.
  package borrowing func hasPending() -> Bool {
    switch pending {
    case .none: false
    case .some: true
    }
  }

  /// The pending key alone; the current one is wiped.
  package consuming func takePending() -> SecretBytes? { pending }
}
