/// Bodies as gzip (RFC 1952) and zlib (RFC 1950), in blocks that are stored (RFC 1951, 3.2.4).
enum PackedBody {
  static func gzip(_ bytes: [UInt8]) -> [UInt8] {
    [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255] + blocks(bytes)
      + littleEndian(checksum(bytes)) + littleEndian(UInt32(bytes.count))
  }

  static func zlib(_ bytes: [UInt8]) -> [UInt8] {
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
      low = (low + UInt32(byte)) % 65521
      high = (high + low) % 65521
    }
    return [0x78, 1] + blocks(bytes) + littleEndian(high << 16 | low).reversed()
  }

  private static func blocks(_ bytes: [UInt8]) -> [UInt8] {
    var written: [UInt8] = []
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(65_535)
      rest = rest.dropFirst(block.count)
      let count = UInt16(block.count)
      written += [rest.isEmpty ? 1 : 0]
      written += littleEndian(UInt32(count) | UInt32(~count) << 16) + block
    } while !rest.isEmpty
    return written
  }

  /// CRC-32, as gzip has it.
  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    var sum: UInt32 = ~0
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 0 ? 0 : 0xEDB8_8320) }
    }
    return ~sum
  }

  private static func littleEndian(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }
}
