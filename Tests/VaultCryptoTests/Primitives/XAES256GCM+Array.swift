import VaultCrypto

extension XAES256GCM {
  /// The ciphertext and the tag of one message.
  func sealed(_ plaintext: [UInt8], nonce: [UInt8], aad: [UInt8]) throws(CryptoError) -> [UInt8] {
    var message = plaintext
    var tag = [UInt8](repeating: 0, count: Self.tagByteCount)
    var messageSpan = message.mutableSpan
    var messageBytes = messageSpan.mutableBytes
    var tagSpan = tag.mutableSpan
    var tagBytes = tagSpan.mutableBytes
    try seal(&messageBytes, nonce: nonce.span.bytes, authenticating: aad.span.bytes, tag: &tagBytes)
    return message + tag
  }

  /// The plaintext of a result of ``sealed(_:nonce:aad:)``.
  func opened(_ sealed: [UInt8], nonce: [UInt8], aad: [UInt8]) throws(CryptoError) -> [UInt8] {
    var message = Array(sealed.dropLast(Self.tagByteCount))
    let tag = Array(sealed.suffix(Self.tagByteCount))
    var messageSpan = message.mutableSpan
    var messageBytes = messageSpan.mutableBytes
    try open(
      &messageBytes, nonce: nonce.span.bytes, authenticating: aad.span.bytes, tag: tag.span.bytes)
    return message
  }
}
