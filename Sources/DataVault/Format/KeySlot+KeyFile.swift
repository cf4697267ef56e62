internal import VaultCrypto

extension KeySlot {
  /// How many bytes a key file has.
  static let keyFileByteCount = 32

  /// A slot around the content key that the 32 bytes of a key file open.
  static func keyFile(
    _ key: borrowing SecretBytes, named name: String, wrapping contentKey: borrowing SecretBytes
  ) throws(CryptoError) -> KeySlot {
    KeySlot(
      method: .keyFile(name: name), wrappedKey: try AES256KeyWrap.wrap(contentKey, with: key))
  }

  /// - Throws: `keyFileLength` unless there are exactly 32 bytes.
  static func requireKeyFile(_ key: borrowing SecretBytes) throws(VaultError) {
    guard key.byteCount == keyFileByteCount else {
      throw VaultError(
        .keyFileLength, "the key file has \(key.byteCount) bytes, not \(keyFileByteCount)",
        hint: "it holds raw random bytes, as head -c 32 /dev/urandom writes them")
    }
  }
}
