package import VaultCrypto

/// The keys of the database that a vault is bound to.
package struct DatabaseKeys: ~Copyable, Sendable {
  /// The key that the database is sealed under, 32 bytes.
  package let current: SecretBytes
  /// While a change of key is under way, the key it leads to.
  package let pending: SecretBytes?
}
