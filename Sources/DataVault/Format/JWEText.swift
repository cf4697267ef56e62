internal import VaultCrypto

/// The members that both JWEs have.
enum JWEText {
  static func sealedBox(
    _ bytes: RawSpan, nonce: Range<Int>, ciphertext: Range<Int>, tag: Range<Int>, of part: String
  ) throws(FormatFault) -> ([UInt8], AES256GCM.SealedBox) {
    let nonce = try decode(bytes, nonce, of: part)
    let box = AES256GCM.SealedBox(
      ciphertext: try decode(bytes, ciphertext, of: part), tag: try decode(bytes, tag, of: part))
    guard nonce.count == AES256GCM.nonceByteCount, box.tag.count == AES256GCM.tagByteCount else {
      throw FormatFault(part, "iv or tag of a wrong length")
    }
    return (nonce, box)
  }

  private static func decode(
    _ bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> [UInt8] {
    // An escape is not in the alphabet, so decoding refuses it.
    try Base64URL.decode(bytes, try JSONText.escapedString(in: bytes, range, of: part), of: part)
  }
}
