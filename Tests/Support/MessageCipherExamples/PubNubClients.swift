import MessageCipher
import VaultCrypto

/// A cipher for clients of PubNub's SDKs, which have the same cipher key.
///
/// It writes what their crypto module writes, and also reads what older SDKs wrote.
func pubNubCipher(cipherKey: borrowing SecretBytes) throws -> MessageCipher {
  try MessageCipher(
    writing: MessageCipher.Key(.aesCBC, cipherKey),
    alsoReading: [MessageCipher.Key(.legacyRandomIV, cipherKey)])
}

/// A cipher during the move to the authenticated form.
func movingCipher(
  key: borrowing SecretBytes, cipherKey: borrowing SecretBytes
) throws -> MessageCipher {
  try MessageCipher(
    writing: MessageCipher.Key(.xaes256GCM, key),
    alsoReading: [MessageCipher.Key(.aesCBC, cipherKey)])
}

/// A cipher that writes under a new key, and still reads messages under the old one.
func renewedCipher(
  newKey: borrowing SecretBytes, oldKey: borrowing SecretBytes
) throws -> MessageCipher {
  try MessageCipher(
    writing: MessageCipher.Key(.xaes256GCM, newKey),
    alsoReading: [MessageCipher.Key(.xaes256GCM, oldKey)])
}
