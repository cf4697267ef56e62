/// The validity of UTF-8 (Unicode, table 3-7), judged where the bytes lie.
enum UTF8Text {
  static func isValid(_ bytes: RawSpan) -> Bool {
    var position = 0
    let end = bytes.byteCount
    while position < end {
      let lead = bytes.byte(position)
      if lead < 0x80 {
        position += 1
        continue
      }
      let length: Int
      let second: ClosedRange<UInt8>
      switch lead {
      case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
      case 0xE0: (length, second) = (3, 0xA0...0xBF)
      case 0xED: (length, second) = (3, 0x80...0x9F)
      case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
      case 0xF0: (length, second) = (4, 0x90...0xBF)
      case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
      case 0xF4: (length, second) = (4, 0x80...0x8F)
      default: return false
      }
      guard end - position >= length, second.contains(bytes.byte(position + 1)) else {
        return false
      }
      for offset in 2..<max(2, length) where bytes.byte(position + offset) & 0xC0 != 0x80 {
        return false
      }
      position += length
    }
    return true
  }
}
