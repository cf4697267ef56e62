extension UnsafeRawPointer {
  /// The four bytes at an offset, big endian, as SQLite writes its numbers.
  func bigEndianWord(at offset: Int) -> UInt32 {
    unsafe UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}

extension UnsafeMutableRawPointer {
  func storeBigEndian(_ word: UInt32, at offset: Int) {
    unsafe storeBytes(of: word.bigEndian, toByteOffset: offset, as: UInt32.self)
  }
}

extension UnsafeRawBufferPointer {
  /// Whether every byte is zero.
  var isZero: Bool {
    let wordByteCount = MemoryLayout<UInt64>.size
    let wholeByteCount = count - count % wordByteCount
    for offset in stride(from: 0, to: wholeByteCount, by: wordByteCount)
    where unsafe loadUnaligned(fromByteOffset: offset, as: UInt64.self) != 0 {
      return false
    }
    return unsafe self[wholeByteCount...].allSatisfy { $0 == 0 }
  }
}
