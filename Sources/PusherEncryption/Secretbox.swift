internal import CSodium
internal import MessagingClient
internal import VaultCrypto

/// NaCl's secretbox: XSalsa20 and Poly1305, with the tag before the ciphertext.
///
/// https://doc.libsodium.org/secret-key_cryptography/secretbox
enum Secretbox {
  static let nonceByteCount = 24
  static let tagByteCount = 16

  /// Whether libsodium can be used; it chooses its implementations once.
  private static let isReady = sodium_init() >= 0

  /// The tag and the ciphertext.
  static func seal(
    _ plaintext: [UInt8], nonce: [UInt8], key: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> [UInt8] {
    try check(nonce, key)
    var sealed = [UInt8](repeating: 0, count: tagByteCount + plaintext.count)
    let status = unsafe key.withUnsafeBytes { key in
      guard let key = unsafe key.bindMemory(to: UInt8.self).baseAddress else { return Int32(-1) }
      return unsafe crypto_secretbox_easy(
        &sealed, plaintext, UInt64(plaintext.count), nonce, key)
    }
    guard status == 0 else { throw .library }
    return sealed
  }

  /// The plaintext; libsodium compares the tag in constant time, before it decrypts.
  static func open(
    _ sealed: [UInt8], nonce: [UInt8], key: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> [UInt8] {
    try check(nonce, key)
    guard sealed.count >= tagByteCount else { throw .decryptionFailed }
    var plaintext = [UInt8](repeating: 0, count: sealed.count - tagByteCount)
    let status = unsafe key.withUnsafeBytes { key in
      guard let key = unsafe key.bindMemory(to: UInt8.self).baseAddress else { return Int32(-1) }
      return unsafe crypto_secretbox_open_easy(
        &plaintext, sealed, UInt64(sealed.count), nonce, key)
    }
    guard status == 0 else {
      wipe(&plaintext)
      throw .decryptionFailed
    }
    return plaintext
  }

  private static func check(
    _ nonce: [UInt8], _ key: borrowing SecretBytes
  ) throws(ChannelDecryptionError) {
    guard isReady else { throw .library }
    guard key.byteCount == PusherEncryption.keyByteCount else { throw .keyLength(key.byteCount) }
    precondition(nonce.count == nonceByteCount, "a nonce has 24 bytes")
  }
}

extension ChannelDecryptionError {
  static var decryptionFailed: ChannelDecryptionError {
    ChannelDecryptionError(
      .decryptionFailed,
      "the event cannot be decrypted: its key is not the publisher's, or it was changed")
  }
}
