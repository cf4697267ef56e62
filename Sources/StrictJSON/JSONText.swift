/// JSON texts (RFC 8259) that stay bytes: checked, searched, and their strings decoded and written.
package enum JSONText {
  /// How many objects and arrays can be inside one another, unless a caller says otherwise.
  package static let maximumDepth = 64

  /// Checks that a text is one JSON value in UTF-8.
  ///
  /// A member can be there twice, and a number can have any size: the text stays as it is.
  ///
  /// - Parameter acceptsHalfPairs: whether `\ud800` alone is accepted.
  /// - Returns: the bytes of the value, without the white space around it.
  @discardableResult
  package static func check(
    _ bytes: [UInt8], maximumDepth: Int = maximumDepth, acceptsHalfPairs: Bool = false
  ) throws(JSONFault) -> Range<Int> {
    var scanner = try JSONScanner(
      bytes, maximumDepth: maximumDepth, acceptsHalfPairs: acceptsHalfPairs)
    let value = try scanner.skipValue()
    try scanner.end()
    return value
  }

  /// Whether a text is one JSON value in UTF-8.
  package static func isValid(_ bytes: [UInt8]) -> Bool { (try? check(bytes)) != nil }

  /// The bytes of a member's value in the outermost object; nil if there is no such object or member.
  ///
  /// - Throws: the first fault in the text; `memberTwice` if the member is there twice.
  package static func member(
    _ name: String, in bytes: [UInt8], maximumDepth: Int = maximumDepth,
    acceptsHalfPairs: Bool = false
  ) throws(JSONFault) -> Range<Int>? {
    var scanner = try JSONScanner(
      bytes, maximumDepth: maximumDepth, acceptsHalfPairs: acceptsHalfPairs)
    guard scanner.isAtObject else {
      _ = try scanner.skipValue()
      try scanner.end()
      return nil
    }
    let name = Array(name.utf8)
    var found: Range<Int>?
    _ = try scanner.next()
    while try scanner.next() == .name {
      let nameRange = scanner.range
      let value = try scanner.skipValue()
      guard decode(bytes[nameRange]) == name else { continue }
      guard found == nil else {
        throw JSONFault(reason: .memberTwice, offset: nameRange.lowerBound)
      }
      found = value
    }
    try scanner.end()
    return found
  }

  // MARK: - Strings

  /// The UTF-8 of a string in quotation marks, whose grammar was checked; nil if it has half a
  /// surrogate pair, which is no character.
  package static func decode(_ quoted: ArraySlice<UInt8>) -> [UInt8]? {
    var rest = quoted.dropFirst().dropLast()
    var decoded: [UInt8] = []
    while let escape = rest.firstIndex(of: UInt8(ascii: "\\")) {
      decoded += rest[..<escape]
      rest = rest[(escape + 1)...]
      guard let letter = rest.popFirst() else { return nil }
      if let byte = escapedByte(letter) {
        decoded.append(byte)
        continue
      }
      guard let unit = codeUnit(rest) else { return nil }
      rest = rest.dropFirst(4)
      if let scalar = Unicode.Scalar(unit) {
        decoded += UTF8.encode(scalar) ?? .init()
      } else {
        guard let scalar = pair(unit, before: rest) else { return nil }
        rest = rest.dropFirst(6)
        decoded += UTF8.encode(scalar) ?? .init()
      }
    }
    return decoded.isEmpty ? Array(rest) : decoded + rest
  }

  /// Appends a string in quotation marks; escapes only what must be escaped.
  package static func append(quoting text: String, to buffer: inout [UInt8]) {
    guard !hasEscaped(text.utf8.span) else {
      return append(quoting: Array(text.utf8), to: &buffer)
    }
    buffer.append(UInt8(ascii: "\""))
    buffer += text.utf8
    buffer.append(UInt8(ascii: "\""))
  }

  /// Appends UTF-8, which the caller has checked, in quotation marks; escapes only what must be
  /// escaped.
  package static func append(quoting text: [UInt8], to buffer: inout [UInt8]) {
    buffer.append(UInt8(ascii: "\""))
    if hasEscaped(text.span) {
      for byte in text {
        if isEscaped(byte) { append(escaping: byte, to: &buffer) } else { buffer.append(byte) }
      }
    } else {
      buffer += text
    }
    buffer.append(UInt8(ascii: "\""))
  }

  private static func append(escaping byte: UInt8, to buffer: inout [UInt8]) {
    buffer.append(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): buffer.append(byte)
    case 0x0A: buffer.append(UInt8(ascii: "n"))
    case 0x0D: buffer.append(UInt8(ascii: "r"))
    case 0x09: buffer.append(UInt8(ascii: "t"))
    default:
      buffer += (byte < 0x10 ? "u000" : "u00").utf8
      buffer += String(byte, radix: 16).utf8
    }
  }

  /// Reads all bytes without a branch, which is faster than to stop at the first.
  private static func hasEscaped(_ text: Span<UInt8>) -> Bool {
    var found = false
    for index in text.indices { found = isEscaped(text[index]) || found }
    return found
  }

  private static func isEscaped(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
  }

  /// What a backslash and a letter stand for; nil for `u` and for no escape.
  static func escapedByte(_ letter: UInt8) -> UInt8? {
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): letter
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: nil
    }
  }

  /// The number of four hexadecimal digits, with which the bytes must begin.
  static func codeUnit(_ bytes: ArraySlice<UInt8>) -> UInt16? {
    guard bytes.count >= 4 else { return nil }
    var unit: UInt16 = 0
    for byte in bytes.prefix(4) {
      guard let digit = byte.hexadecimalDigit else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }

  /// The character of a surrogate whose second half is an escape, with which the bytes must begin.
  static func pair(_ lead: UInt16, before bytes: ArraySlice<UInt8>) -> Unicode.Scalar? {
    guard UTF16.isLeadSurrogate(lead), bytes.starts(with: #"\u"#.utf8),
      let trail = codeUnit(bytes.dropFirst(2)), UTF16.isTrailSurrogate(trail)
    else { return nil }
    return Unicode.Scalar(0x10000 + (UInt32(lead & 0x3FF) << 10 | UInt32(trail & 0x3FF)))
  }
}

extension UInt8 {
  /// The value of a hexadecimal digit; nil for another character.
  package var hexadecimalDigit: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
