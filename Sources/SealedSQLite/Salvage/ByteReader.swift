/// Takes numbers off the front of some bytes; nil where they end.
struct ByteReader {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard count >= 0, count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  mutating func word() -> UInt32? {
    bytes(4).map { $0.reduce(0) { $0 << 8 | UInt32($1) } }
  }

  /// A signed number, big endian, of 1 to 8 bytes.
  mutating func integer(_ byteCount: Int) -> Int64? {
    guard let bytes = bytes(byteCount), let first = bytes.first else { return nil }
    return bytes.reduce(first >= 0x80 ? -1 : 0) { $0 << 8 | Int64($1) }
  }

  /// SQLite's number of one to nine bytes: <https://sqlite.org/fileformat2.html#varint>.
  mutating func varint() -> Int64? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard let byte = rest.popFirst() else { return nil }
      if index == 8 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte < 0x80 { return Int64(bitPattern: value) }
    }
    return nil
  }
}
