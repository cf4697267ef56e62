internal import VaultCrypto

extension Base64URL {
  /// Decodes a text that is not secret.
  static func decode(
    _ bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> [UInt8] {
    var decoded = [UInt8](repeating: 0, count: range.count * 3 / 4)
    try unsafe decoded.withUnsafeMutableBufferPointer { (target) throws(FormatFault) in
      _ = try unsafe decode(bytes, range, into: UnsafeMutableRawBufferPointer(target), of: part)
    }
    return decoded
  }

  /// Decodes a secret text.
  static func decodeSecret(
    _ bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> SecretBytes {
    try unsafe SecretBytes(byteCount: range.count * 3 / 4) { (target) throws(FormatFault) in
      _ = try unsafe decode(bytes, range, into: target, of: part)
    }
  }

  /// Decodes to `target`, which must have room, and returns the number of bytes.
  ///
  /// - Throws: a fault if the length, a character or the trailing bits are invalid.
  static func decode(
    _ bytes: RawSpan, _ range: Range<Int>, into target: UnsafeMutableRawBufferPointer,
    of part: String
  ) throws(FormatFault) -> Int {
    guard let count = unsafe decode(bytes, range, into: target) else {
      throw FormatFault(part, "not canonical base64url")
    }
    return count
  }
}
