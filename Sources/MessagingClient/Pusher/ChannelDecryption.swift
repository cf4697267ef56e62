public import VaultCrypto

/// Opens the events of encrypted channels, so that this module needs no library for it.
public protocol ChannelDecryption: Sendable {
  /// Opens the data of an event: `{"nonce":"...","ciphertext":"..."}`.
  ///
  /// - Parameter key: the channel's key, 32 bytes.
  /// - Throws: an error if the data is not sealed under this key.
  func open(_ data: [UInt8], key: borrowing SecretBytes) throws -> [UInt8]
}
