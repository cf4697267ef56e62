internal import VaultCrypto

/// A key of 32 bytes as text: keyrings show secrets as text, and some keep nothing else.
///
/// No step depends on a digit's value: neither a branch nor an address.
enum HexadecimalKey {
  static let keyByteCount = 32
  static let textByteCount = 64

  /// 64 lowercase digits.
  static func text(of key: borrowing SecretBytes) -> SecretBytes {
    key.withBytes { key in
      unsafe SecretBytes(byteCount: key.byteCount * 2) { text in
        for index in 0..<key.byteCount {
          let byte = unsafe key.unsafeLoad(fromByteOffset: index, as: UInt8.self)
          unsafe text[2 * index] = digit(byte >> 4)
          unsafe text[2 * index + 1] = digit(byte & 15)
        }
      }
    }
  }

  /// The key; nil if the text is not 64 lowercase digits.
  static func key(in text: borrowing SecretBytes) -> SecretBytes? {
    guard text.byteCount == textByteCount else { return nil }
    let key = text.withBytes { text in
      unsafe SecretBytes(byteCount: keyByteCount) { key in
        for index in 0..<keyByteCount {
          let high = value(unsafe text.unsafeLoad(fromByteOffset: 2 * index, as: UInt8.self))
          let low = value(unsafe text.unsafeLoad(fromByteOffset: 2 * index + 1, as: UInt8.self))
          unsafe key[index] = high << 4 | low
        }
      }
    }
    // Other characters than digits do not come back.
    guard SecretBytes.isEqual(Self.text(of: key), text) else { return nil }
    return key
  }

  /// 0...9 become "0"..."9", 10...15 become "a"..."f", which begin 39 places later than after "9".
  private static func digit(_ value: UInt8) -> UInt8 {
    0x30 + value + ((9 &- value) >> 7) * 39
  }

  private static func value(_ digit: UInt8) -> UInt8 {
    (digit & 15) &+ (digit >> 6) &* 9 & 15
  }
}
