public import VaultCrypto

/// The clear first 16 bytes of a sealed database: `docs/reference/sealed-database-format.md`, "The header".
public struct SealedHeader: Sendable, Equatable {
  /// The version that this library writes and reads.
  public static let currentVersion = 1

  static let byteCount = 16
  static let magic: [UInt8] = [0x8E, 0x44, 0x56]
  /// The length of a file id in bytes.
  public static let fileIDByteCount = 8

  /// Distinguishes a wrong key from the right one, except once in 2^32; it does not commit to the
  /// key.
  let keyCheck: [UInt8]

  /// The file's identity: 8 random bytes that a key change keeps.
  public let fileID: [UInt8]

  /// Whether the key check matches this key.
  ///
  /// - Throws: `libraryFailure`, which says nothing about the key.
  public func matches(key: borrowing SecretBytes) throws(CryptoError) -> Bool {
    let expected = try DerivedKeys.keyCheck(of: key, fileID: fileID)
    return unsafe isEqualInConstantTime(expected.span.bytes, keyCheck.span.bytes)
  }

  /// Whether the key check matches this key; an error names the file at `path`.
  func matches(
    key: borrowing SecretBytes, at path: String
  ) throws(SealedDatabaseError) -> Bool {
    try translatingCryptoErrors(at: path, matches(key: key))
  }

  /// The 16 bytes on disk.
  var bytes: [UInt8] {
    Self.magic + [UInt8(Self.currentVersion)] + keyCheck + fileID
  }
}

extension SealedHeader {
  /// The header of a file with this identity under this key.
  init(fileID: [UInt8], key: borrowing SecretBytes) throws(CryptoError) {
    self.init(keyCheck: try DerivedKeys.keyCheck(of: key, fileID: fileID), fileID: fileID)
  }
}

extension UnsafeRawPointer {
  /// The four bytes at an offset, big endian, as SQLite writes its numbers.
  func bigEndianWord(at offset: Int) -> UInt32 {
    unsafe UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  /// The size of the database that an opened page 1 states, in pages; nil if it is not valid.
  ///
  /// See <https://sqlite.org/fileformat2.html#in_header_database_size>.
  var statedPageCount: UInt32? {
    let count = unsafe bigEndianWord(at: 28)
    return unsafe count > 0 && bigEndianWord(at: 24) == bigEndianWord(at: 92) ? count : nil
  }
}

extension [UInt8] {
  /// Four bytes, big endian.
  ///
  /// - Precondition: they lie within the array.
  package func bigEndianWord(at offset: Int) -> UInt32 {
    UInt32(self[offset]) << 24 | UInt32(self[offset + 1]) << 16
      | UInt32(self[offset + 2]) << 8 | UInt32(self[offset + 3])
  }
}

extension UnsafeMutableRawPointer {
  func bigEndianWord(at offset: Int) -> UInt32 {
    unsafe UnsafeRawPointer(self).bigEndianWord(at: offset)
  }

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
