internal import VaultCrypto

extension KeySlot {
  /// A slot around the content key that a recovery code opens.
  static func recoveryCode(
    _ code: borrowing RecoveryCode, named name: String, wrapping contentKey: borrowing SecretBytes
  ) throws(CryptoError) -> KeySlot {
    let key = try code.wrappingKey()
    return KeySlot(
      method: .recoveryCode(name: name),
      wrappedKey: try AES256KeyWrap.wrap(contentKey, with: key))
  }
}
