/// Base32 (RFC 4648, section 6) without padding, of bytes that are not secret.
enum Base32 {
  private static let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var bits: UInt32 = 0
    var bitCount: UInt32 = 0
    for byte in bytes {
      bits = (bits & 0xFF) << 8 | UInt32(byte)
      bitCount += 8
      while bitCount >= 5 {
        bitCount -= 5
        text.append(characters[Int(bits >> bitCount & 0x1F)])
      }
    }
    if bitCount > 0 { text.append(characters[Int(bits << (5 - bitCount) & 0x1F)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Whether a text has only characters of the alphabet.
  static func hasOnlyItsCharacters(_ text: String) -> Bool {
    text.utf8.allSatisfy(characters.contains)
  }

  /// The bytes of a text; nil for another character, a wrong length, or trailing bits that are not zero.
  static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var bitCount: UInt32 = 0
    for character in text.utf8 {
      guard let value = characters.firstIndex(of: character) else { return nil }
      bits = bits << 5 | UInt32(value)
      bitCount += 5
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
        bits &= 1 << bitCount - 1
      }
    }
    return bits == 0 && bitCount < 5 ? bytes : nil
  }
}
