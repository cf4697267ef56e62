/// Cuts bytes into pieces of random lengths, which the input determines.
struct Pieces {
  // Never 0: from 0 the generator would produce only 0, and every piece would have one byte.
  private var randomState: UInt64

  init(_ input: some Sequence<UInt8>) {
    randomState = input.reduce(0x9E37_79B9_7F4A_7C15) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 } | 1
  }

  /// A random number.
  mutating func next() -> UInt64 {
    randomState ^= randomState << 13
    randomState ^= randomState >> 7
    randomState ^= randomState << 17
    return randomState
  }

  /// The pieces, whose lengths are below a random power of two.
  ///
  /// - Parameter largestBitCount: the greatest exponent.
  mutating func cut(_ bytes: [UInt8], largestBitCount: Int = 17) -> [ArraySlice<UInt8>] {
    var pieces: [ArraySlice<UInt8>] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let random = next()
      let scale = 1 << (Int(random >> 8) % (largestBitCount + 1))
      pieces.append(rest.prefix(1 + Int(random >> 32) % scale))
      rest = rest.dropFirst(pieces[pieces.count - 1].count)
    }
    return pieces
  }
}
