/// SHAKE-128 (FIPS 202) in a simple implementation, for the accumulated vectors.
///
/// It squeezes in parts, which OpenSSL 3.0 cannot do.
struct SHAKE128 {
  private static let rateByteCount = 168

  private var lanes = [UInt64](repeating: 0, count: 25)
  private var position = 0
  private var isSqueezing = false

  /// Absorbs bytes; not allowed after the first squeeze.
  mutating func absorb(_ bytes: [UInt8]) {
    precondition(!isSqueezing, "absorb() after squeeze()")
    for byte in bytes {
      lanes[position / 8] ^= UInt64(byte) << (8 * UInt64(position % 8))
      advance()
    }
  }

  /// The next bytes of the output.
  mutating func squeeze(_ count: Int) -> [UInt8] {
    if !isSqueezing {
      lanes[position / 8] ^= 0x1F << (8 * UInt64(position % 8))
      lanes[Self.rateByteCount / 8 - 1] ^= 0x80 << 56
      permute()
      position = 0
      isSqueezing = true
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    for _ in 0..<count {
      bytes.append(UInt8(truncatingIfNeeded: lanes[position / 8] >> (8 * UInt64(position % 8))))
      advance()
    }
    return bytes
  }

  private mutating func advance() {
    position += 1
    if position == Self.rateByteCount {
      permute()
      position = 0
    }
  }

  /// Keccak-f[1600].
  private mutating func permute() {
    lanes.withUnsafeMutableBufferPointer { a in
      withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 5) { c in
        var roundConstants: UInt8 = 1
        for _ in 0..<24 {
          for x in 0..<5 { c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] }
          for x in 0..<5 {
            let d = c[(x + 4) % 5] ^ Self.rotate(c[(x + 1) % 5], by: 1)
            for y in 0..<5 { a[x + 5 * y] ^= d }
          }
          var (x, y) = (1, 0)
          var lane = a[1]
          for step in 1...24 {
            (x, y) = (y, (2 * x + 3 * y) % 5)
            let next = a[x + 5 * y]
            a[x + 5 * y] = Self.rotate(lane, by: step * (step + 1) / 2 % 64)
            lane = next
          }
          for y in 0..<5 {
            for x in 0..<5 { c[x] = a[x + 5 * y] }
            for x in 0..<5 { a[x + 5 * y] = c[x] ^ (~c[(x + 1) % 5] & c[(x + 2) % 5]) }
          }
          for bit in 0...6 {
            // The linear feedback shift register of FIPS 202, algorithm 5.
            if roundConstants & 1 == 1 { a[0] ^= 1 << ((1 << UInt64(bit)) - 1) }
            let carry = roundConstants >> 7
            roundConstants = roundConstants << 1 ^ carry * 0x71
          }
        }
      }
    }
  }

  private static func rotate(_ lane: UInt64, by count: Int) -> UInt64 {
    lane << UInt64(count) | lane >> UInt64((64 - count) % 64)
  }
}
