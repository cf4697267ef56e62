/// Crockford's base32, as recovery codes are written.
///
/// Without tables and without branches on the data, because a secret passes through it.
enum CrockfordBase32 {
  /// The character for 5 bits: the digits, then the letters without I, L, O and U.
  static func character(_ bits: UInt8) -> UInt8 {
    let value = Int32(bits)
    // Each term adds the step from one run of the alphabet to the next when value is beyond it.
    var character = value + 48
    character += ((9 - value) >> 8) & 7
    character += ((17 - value) >> 8) & 1
    character += ((19 - value) >> 8) & 1
    character += ((21 - value) >> 8) & 1
    character += ((26 - value) >> 8) & 1
    return UInt8(truncatingIfNeeded: character)
  }

  /// The 5 bits of a character, in either case, with I and L read as 1 and O as 0; negative for one
  /// outside the alphabet.
  static func bits(_ character: UInt8) -> Int32 {
    var c = Int32(character)
    func mask(_ low: Int32, _ high: Int32) -> Int32 { ((low - 1 - c) & (c - high - 1)) >> 8 }
    c -= mask(97, 122) & 32
    var bits: Int32 = -1
    bits += mask(48, 57) & (c - 47)  // 0 to 9
    bits += mask(65, 72) & (c - 54)  // A to H
    bits += mask(73, 73) & 2  // I
    bits += mask(74, 75) & (c - 55)  // J, K
    bits += mask(76, 76) & 2  // L
    bits += mask(77, 78) & (c - 56)  // M, N
    bits += mask(79, 79) & 1  // O
    bits += mask(80, 84) & (c - 57)  // P to T
    bits += mask(86, 90) & (c - 58)  // V to Z
    return bits
  }
}
