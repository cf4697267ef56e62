/// Base64 and base64url (RFC 4648) of bytes that are not secret.
enum Base64 {
  /// The alphabets that a text can use.
  enum Alphabet {
    case url
    /// Also `+` and `/`, which old Ruby clients write in signatures.
    case both
  }

  private static let characters = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// The base64url text of bytes.
  static func encode(_ bytes: [UInt8], padded: Bool) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
      for number in 0...group.count {
        text.append(characters[Int(bits >> (18 - 6 * UInt32(number)) & 0x3F)])
      }
      if padded { text += repeatElement(UInt8(ascii: "="), count: 3 - group.count) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes of a text; nil for another character, a wrong length, or trailing bits that are not
  /// zero.
  ///
  /// Padding can be there or not: PubNub's tokens were recorded with more of it than needed, and
  /// clients cut it off.
  static func decode(_ text: some Collection<UInt8>, alphabet: Alphabet) -> [UInt8]? {
    var characters = Array(text)[...]
    var paddingCount = 0
    while paddingCount < 2, characters.last == UInt8(ascii: "=") {
      characters.removeLast()
      paddingCount += 1
    }
    let lastCount = characters.count % 4
    guard lastCount != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(characters.count * 3 / 4)
    var bits: UInt32 = 0
    var bitCount: UInt32 = 0
    for character in characters {
      guard let value = value(character, alphabet) else { return nil }
      bits = bits << 6 | UInt32(value)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
        bits &= 1 << bitCount - 1
      }
    }
    return bits == 0 ? bytes : nil
  }

  private static func value(_ character: UInt8, _ alphabet: Alphabet) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    case UInt8(ascii: "+") where alphabet == .both: 62
    case UInt8(ascii: "/") where alphabet == .both: 63
    default: nil
    }
  }
}
