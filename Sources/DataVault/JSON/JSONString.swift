/// Decoding of the escapes in JSON strings (RFC 8259, section 7), straight into a buffer.
enum JSONString {
  /// Decodes a string to `target` and returns its size in bytes, which never exceeds that of the
  /// escaped form.
  ///
  /// - Throws: a fault for an invalid escape, an unpaired surrogate, or bytes that are not UTF-8.
  static func unescape(
    _ bytes: RawSpan, _ range: Range<Int>, into target: UnsafeMutableRawBufferPointer,
    of part: String
  ) throws(FormatFault) -> Int {
    var position = range.lowerBound
    var count = 0
    while position < range.upperBound {
      let byte = bytes.byte(position)
      if byte != UInt8(ascii: "\\") {
        unsafe target[count] = byte
        count += 1
        position += 1
        continue
      }
      let scalar = try escape(in: bytes, at: &position, end: range.upperBound, of: part)
      for unit in scalar.utf8 {
        unsafe target[count] = unit
        count += 1
      }
    }
    let decoded = unsafe RawSpan(
      _unsafeBytes: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(target)[..<count]))
    guard decoded.isUTF8 else { throw FormatFault(part, "not UTF-8") }
    return count
  }

  private static func escape(
    in bytes: RawSpan, at position: inout Int, end: Int, of part: String
  ) throws(FormatFault) -> Unicode.Scalar {
    guard end - position >= 2 else { throw FormatFault(part, "an escape has no end") }
    let letter = bytes.byte(position + 1)
    position += 2
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(letter)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      let unit = try codeUnit(in: bytes, at: &position, end: end, of: part)
      if let scalar = Unicode.Scalar(unit) { return scalar }
      guard UTF16.isLeadSurrogate(unit), bytes.hasBytes("\\u".utf8, at: position) else { break }
      position += 2
      let trail = try codeUnit(in: bytes, at: &position, end: end, of: part)
      guard UTF16.isTrailSurrogate(trail) else { break }
      let value = 0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(trail & 0x3FF))
      if let scalar = Unicode.Scalar(value) { return scalar }
    default: break
    }
    throw FormatFault(part, "an invalid escape")
  }

  private static func codeUnit(
    in bytes: RawSpan, at position: inout Int, end: Int, of part: String
  ) throws(FormatFault) -> UInt16 {
    guard end - position >= 4 else { throw FormatFault(part, "an escape has no end") }
    var unit: UInt16 = 0
    for offset in position..<position + 4 {
      guard let digit = Character(Unicode.Scalar(bytes.byte(offset))).hexDigitValue else {
        throw FormatFault(part, "an invalid escape")
      }
      unit = unit << 4 | UInt16(digit)
    }
    position += 4
    return unit
  }
}

extension RawSpan {
  /// Whether the bytes are UTF-8; they are not copied.
  var isUTF8: Bool {
    do {
      _ = try UTF8Span(validating: Span(_bytes: self))
      return true
    } catch {
      return false
    }
  }
}
