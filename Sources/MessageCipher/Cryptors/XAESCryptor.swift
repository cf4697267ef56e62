internal import Synchronization
internal import VaultCrypto

/// DataVault's form: XAES-256-GCM with header, channel and place as associated data.
///
/// See `docs/reference/encrypted-message-format.md`, "DataVault's form".
final class XAESCryptor: Cryptor {
  static let keyByteCount = 32
  static let keyIDByteCount = 8
  /// The key id and the nonce.
  static let dataByteCount = keyIDByteCount + XAES256GCM.nonceByteCount
  static let nonceStart = MessageCipher.Header.byteCount + keyIDByteCount
  static let ciphertextStart = MessageCipher.Header.byteCount + dataByteCount
  /// What a message has beside the ciphertext.
  static let overheadByteCount = ciphertextStart + XAES256GCM.tagByteCount

  let form = MessageCipher.Form.xaes256GCM
  let family = MessageCipher.SealedMessage.Family.xaes256GCM
  let keyID: [UInt8]?

  private let cipher: Mutex<XAES256GCM>
  private let random: RandomSource
  /// The first 18 bytes of each message: the header and the key id.
  private let start: [UInt8]

  init(key: borrowing SecretBytes, random: RandomSource) throws(CryptoError) {
    let derived = try HKDF.sha512(
      inputKey: key, salt: [], info: Array("datavault/message".utf8),
      byteCount: Self.keyByteCount + Self.keyIDByteCount)
    let id = derived.copy(Self.keyByteCount..<derived.byteCount)
    let keyID = unsafe id.withUnsafeBytes { unsafe Array($0) }
    cipher = Mutex(try XAES256GCM(key: derived.copy(0..<Self.keyByteCount)))
    start =
      MessageCipher.Header.bytes(
        MessageCipher.Header.xaes256GCM, dataByteCount: Self.dataByteCount) + keyID
    self.keyID = keyID
    self.random = random
  }

  func seal(_ plaintext: [UInt8], _ binding: MessageCipher.Binding) throws(CryptoError) -> [UInt8] {
    let nonce = random.bytes(count: XAES256GCM.nonceByteCount)
    let header = start + nonce
    var message = plaintext
    let tag = try cipher.withLock { (cipher) throws(CryptoError) in
      try cipher.seal(&message, nonce: nonce, authenticating: header + binding.bytes)
    }
    return header + message + tag
  }

  func open(
    _ message: MessageCipher.SealedMessage, _ binding: MessageCipher.Binding
  ) throws(CryptoError) -> [UInt8] {
    let bytes = message.bytes
    let tagStart = bytes.count - XAES256GCM.tagByteCount
    let nonce = Array(bytes[Self.nonceStart..<Self.ciphertextStart])
    let header = Array(bytes[..<Self.ciphertextStart])
    var plaintext = Array(bytes[Self.ciphertextStart..<tagStart])
    try cipher.withLock { (cipher) throws(CryptoError) in
      try cipher.open(
        &plaintext, nonce: nonce, authenticating: header + binding.bytes,
        tag: Array(bytes[tagStart...]))
    }
    return plaintext
  }
}
