internal import VaultCrypto

/// A slot whose wrapping key is the contents of a key file.
struct KeyFileSlot: NamedSlotKind {
  static let secretKind = VaultStatus.Slot.Kind.keyFile
  static let prefix = "keyfile:"
  private static let keyByteCount = 32

  let identifier: String

  func wrappingKey(of secret: borrowing VaultSecret) throws(CryptoError) -> SecretBytes? {
    switch secret {
    case .keyFile(let key): key.copy()
    default: nil
    }
  }

  static func wrongSecret(of id: VaultID) -> VaultError {
    VaultError(
      .wrongPassword, "the key file does not open vault '\(id)'",
      hint: "it belongs to another vault or to a slot that was removed")
  }

  /// - Throws: `keyFileLength` unless the key has exactly 32 bytes.
  static func requireKey(_ key: borrowing SecretBytes) throws(VaultError) {
    guard key.byteCount == keyByteCount else {
      throw VaultError(
        .keyFileLength, "the key file has \(key.byteCount) bytes, not \(keyByteCount)",
        hint: "create one with: head -c 32 /dev/urandom > FILE")
    }
  }
}
