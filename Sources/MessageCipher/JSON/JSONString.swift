internal import FoundationEssentials

/// Strings in JSON texts (RFC 8259, section 7).
enum JSONString {
  /// The UTF-8 of a string in quotation marks, whose grammar was checked; nil if it has half a
  /// surrogate pair, which no text of Unicode has.
  static func decode(_ quoted: ArraySlice<UInt8>) -> [UInt8]? {
    var rest = quoted.dropFirst().dropLast()
    guard rest.contains(UInt8(ascii: "\\")) else { return Array(rest) }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(rest.count)
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        decoded.append(byte)
        continue
      }
      guard let letter = rest.popFirst() else { return nil }
      if let simple = simpleEscapes[letter] {
        decoded.append(simple)
      } else {
        guard let scalar = scalar(&rest) else { return nil }
        decoded += String(Character(scalar)).utf8
      }
    }
    return decoded
  }

  static func isSimpleEscape(_ letter: UInt8) -> Bool { simpleEscapes[letter] != nil }

  static func hexadecimalValue(_ digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(digit - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(digit - UInt8(ascii: "A")) + 10
    default: nil
    }
  }

  private static let simpleEscapes: [UInt8: UInt8] = [
    UInt8(ascii: "\""): 0x22, UInt8(ascii: "\\"): 0x5C, UInt8(ascii: "/"): 0x2F,
    UInt8(ascii: "b"): 0x08, UInt8(ascii: "f"): 0x0C, UInt8(ascii: "n"): 0x0A,
    UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09,
  ]

  /// The character of an escape after its `\u`, and of a second one if the two are a surrogate pair.
  private static func scalar(_ rest: inout ArraySlice<UInt8>) -> Unicode.Scalar? {
    guard let unit = codeUnit(&rest) else { return nil }
    if let scalar = Unicode.Scalar(unit) { return scalar }
    guard rest.starts(with: "\\u".utf8) else { return nil }
    rest = rest.dropFirst(2)
    guard unit < 0xDC00, let trail = codeUnit(&rest), 0xDC00..<0xE000 ~= trail else { return nil }
    return Unicode.Scalar(0x10000 + ((unit & 0x3FF) << 10 | trail & 0x3FF))
  }

  private static func codeUnit(_ rest: inout ArraySlice<UInt8>) -> UInt32? {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let value = rest.popFirst().flatMap(hexadecimalValue) else { return nil }
      unit = unit << 4 | value
    }
    return unit
  }
}

/// Base64 (RFC 4648, section 4) in a JSON string.
enum Base64String {
  /// Bytes as a JSON string of base64.
  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    let quotationMark = UInt8(ascii: "\"")
    return [quotationMark] + Data(bytes).base64EncodedData() + [quotationMark]
  }

  /// The bytes of a JSON string whose grammar was checked; nil unless it is base64 in the form of
  /// ``encode(_:)``.
  static func decode(_ quoted: ArraySlice<UInt8>) -> [UInt8]? {
    guard let text = JSONString.decode(quoted), let data = Data(base64Encoded: Data(text)),
      data.base64EncodedData() == Data(text)
    else { return nil }
    return [UInt8](data)
  }
}
