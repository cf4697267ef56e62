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
    unsafe allSatisfy { $0 == 0 }
  }
}
