extension RawSpan {
  /// The byte at an offset; the bounds are checked.
  func byte(_ offset: Int) -> UInt8 {
    unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }

  /// Whether the bytes from `offset` on begin with these.
  func hasBytes(_ bytes: some Collection<UInt8>, at offset: Int) -> Bool {
    guard byteCount - offset >= bytes.count else { return false }
    var offset = offset
    for expected in bytes {
      if byte(offset) != expected { return false }
      offset += 1
    }
    return true
  }

  /// Whether the bytes of a range are exactly these.
  func equals(_ bytes: some Collection<UInt8>, in range: Range<Int>) -> Bool {
    range.count == bytes.count && hasBytes(bytes, at: range.lowerBound)
  }

  /// A copy of the bytes of a range in the heap; not for secrets.
  func array(_ range: Range<Int>) -> [UInt8] {
    range.map { byte($0) }
  }

  /// Whether the bytes of `range` come before, are equal to, or come after `other`, byte by byte.
  func compare(_ range: Range<Int>, to other: Range<Int>, of otherBytes: RawSpan) -> Int {
    for offset in 0..<Swift.min(range.count, other.count) {
      let difference =
        Int(byte(range.lowerBound + offset)) - Int(otherBytes.byte(other.lowerBound + offset))
      if difference != 0 { return difference }
    }
    return range.count - other.count
  }
}
