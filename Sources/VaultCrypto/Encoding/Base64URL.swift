/// Base64url (RFC 4648, section 5) without padding; trailing bits must be zero.
///
/// The code has no tables and no branches on the data, because keys pass through it.
package enum Base64URL {
  /// The number of characters that encode a number of bytes.
  package static func encodedCount(_ byteCount: Int) -> Int {
    (byteCount * 4 + 2) / 3
  }

  /// The character for 6 bits.
  static func character(_ bits: UInt32) -> UInt8 {
    let value = Int32(bits)
    // Each term adds the step to the next run of the alphabet if the value is beyond the current
    // run.
    var character = value + 65
    character += ((25 - value) >> 8) & 6
    character -= ((51 - value) >> 8) & 75
    character -= ((61 - value) >> 8) & 13
    character += ((62 - value) >> 8) & 49
    return UInt8(truncatingIfNeeded: character)
  }

  /// The 6 bits of a character; negative for a character outside the alphabet.
  static func bits(_ character: UInt8) -> Int32 {
    let c = Int32(character)
    func mask(_ low: Int32, _ high: Int32) -> Int32 { ((low - 1 - c) & (c - high - 1)) >> 8 }
    var bits: Int32 = -1
    bits += mask(65, 90) & (c - 64)
    bits += mask(97, 122) & (c - 70)
    bits += mask(48, 57) & (c + 5)
    bits += mask(45, 45) & 63
    bits += mask(95, 95) & 64
    return bits
  }

  /// The base64url text of bytes that are not secret.
  package static func encode(_ bytes: [UInt8]) -> [UInt8] {
    let source = unsafe bytes.span.bytes
    return unsafe [UInt8](unsafeUninitializedCapacity: encodedCount(bytes.count)) { text, count in
      count = unsafe encode(source, 0..<bytes.count, into: UnsafeMutableRawBufferPointer(text))
    }
  }

  /// Encodes to `target`, which must have room, and returns the number of characters.
  package static func encode(
    _ bytes: RawSpan, _ range: Range<Int>, into target: UnsafeMutableRawBufferPointer
  ) -> Int {
    var accumulator: UInt32 = 0
    var bitCount: UInt32 = 0
    var count = 0
    for offset in range {
      accumulator = (accumulator & 0xFF) << 8 | UInt32(byte(bytes, offset))
      bitCount += 8
      while bitCount >= 6 {
        bitCount -= 6
        unsafe target[count] = character(accumulator >> bitCount & 0x3F)
        count += 1
      }
    }
    if bitCount > 0 {
      unsafe target[count] = character(accumulator << (6 - bitCount) & 0x3F)
      count += 1
    }
    return count
  }

  /// Decodes a text that is not secret; nil if the length, a character or the trailing bits are
  /// invalid.
  package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    let text = Array(text)
    var decoded = [UInt8](repeating: 0, count: text.count * 3 / 4)
    let count = unsafe decoded.withUnsafeMutableBytes { target in
      unsafe decode(text.span.bytes, 0..<text.count, into: target)
    }
    return count == nil ? nil : decoded
  }

  /// Decodes to `target`, which must have room, and returns the number of bytes.
  ///
  /// It returns nil if the length, a character or the trailing bits are invalid.
  package static func decode(
    _ bytes: RawSpan, _ range: Range<Int>, into target: UnsafeMutableRawBufferPointer
  ) -> Int? {
    var accumulator: UInt32 = 0
    var bitCount: UInt32 = 0
    var fault: Int32 = 0
    var count = 0
    for offset in range {
      let bits = bits(byte(bytes, offset))
      fault |= bits
      accumulator = accumulator << 6 | UInt32(truncatingIfNeeded: bits & 0x3F)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        unsafe target[count] = UInt8(truncatingIfNeeded: accumulator >> bitCount)
        accumulator &= 0x3F
        count += 1
      }
    }
    let trailing = accumulator & (1 << bitCount - 1)
    return fault >= 0 && trailing == 0 && range.count % 4 != 1 ? count : nil
  }

  private static func byte(_ bytes: RawSpan, _ offset: Int) -> UInt8 {
    unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }
}
