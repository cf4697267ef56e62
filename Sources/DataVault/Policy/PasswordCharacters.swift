/// The characters of a password, taken where its bytes lie: Unicode scalars, or bytes where they are
/// not UTF-8.
enum PasswordCharacters {
  static func forEach(in bytes: RawSpan, _ body: (Unicode.Scalar) -> Void) {
    guard UTF8Text.isValid(bytes) else {
      for offset in 0..<bytes.byteCount { body(standIn(for: bytes.byte(offset))) }
      return
    }
    var offset = 0
    while offset < bytes.byteCount {
      let lead = bytes.byte(offset)
      let length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
      var value = UInt32(length == 1 ? lead : lead & (0x7F >> length))
      for next in offset + 1..<offset + length {
        value = value << 6 | UInt32(bytes.byte(next) & 0x3F)
      }
      offset += length
      if let scalar = Unicode.Scalar(value) { body(scalar) }
    }
  }

  /// A byte that is no character: ASCII for itself, others each for a private one, which is neither
  /// a letter nor a digit.
  private static func standIn(for byte: UInt8) -> Unicode.Scalar {
    byte < 0x80 ? Unicode.Scalar(byte) : Unicode.Scalar(0xE000 + UInt16(byte)) ?? "\u{FFFD}"
  }
}
