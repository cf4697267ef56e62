public import VaultCrypto

/// The secret that opens an SQLCipher 4 database: a passphrase, or the raw key.
public struct SQLCipherKey: ~Copyable, Sendable {
  private let secret: SecretBytes
  private let isRaw: Bool

  /// The salt that was given with a raw key.
  let salt: [UInt8]?

  /// Takes the same bytes as SQLCipher's own `PRAGMA key`.
  ///
  /// They are a passphrase of at least one byte, or a raw key. A raw key is `x'`, 64 hexadecimal
  /// digits and `'`; or 96 digits, of which the last 32 are the salt. As in SQLCipher, the length
  /// and the digits decide: a text of this form cannot be a passphrase.
  ///
  /// - Throws: `invalidArgument` for no bytes, which to SQLCipher means no encryption.
  public init(_ bytes: borrowing SecretBytes) throws(SealedDatabaseError) {
    guard bytes.byteCount > 0 else {
      throw SealedDatabaseError(.invalidArgument, path: "", detail: "the passphrase is empty")
    }
    let byteCount = SQLCipherLayout.keyByteCount
    guard let raw = Hexadecimal.bytes(in: bytes),
      [byteCount, byteCount + SQLCipherLayout.saltByteCount].contains(raw.byteCount)
    else {
      secret = bytes.copy()
      isRaw = false
      salt = nil
      return
    }
    secret = raw.copy(0..<byteCount)
    isRaw = true
    salt =
      raw.byteCount == byteCount
      ? nil : raw.withBytes { span in (byteCount..<span.byteCount).map { span.byte(at: $0) } }
  }

  /// Takes a raw key, and the salt of an old file or for a new one.
  ///
  /// - Parameter salt: 16 bytes; nil takes the file's salt, or draws one for a new file.
  /// - Throws: `invalidArgument` unless the key has 32 bytes and a salt has 16.
  public init(
    rawKey: consuming SecretBytes, salt: [UInt8]? = nil
  ) throws(SealedDatabaseError) {
    guard rawKey.byteCount == SQLCipherLayout.keyByteCount,
      (salt ?? Array(repeating: 0, count: SQLCipherLayout.saltByteCount)).count
        == SQLCipherLayout.saltByteCount
    else {
      throw SealedDatabaseError(
        .invalidArgument, path: "", detail: "a raw key must have 32 bytes, and its salt 16")
    }
    secret = rawKey
    isRaw = true
    self.salt = salt
  }

  /// The page key of a file with this salt; a passphrase costs 256,000 iterations of PBKDF2.
  func pageKey(salt: [UInt8]) throws(CryptoError) -> SecretBytes {
    if isRaw { return secret.copy() }
    return try PBKDF2.sha512(
      password: secret, salt: salt, iterationCount: SQLCipherLayout.iterationCount,
      byteCount: SQLCipherLayout.keyByteCount)
  }
}

/// Decodes SQLCipher's `x'…'`.
private enum Hexadecimal {
  private static let prefixByteCount = 2

  /// The bytes that a text of this form spells, in locked memory; nil for any other text.
  static func bytes(in text: borrowing SecretBytes) -> SecretBytes? {
    text.withBytes { span in
      guard span.byteCount > prefixByteCount, !span.byteCount.isMultiple(of: 2) else { return nil }
      let first = span.byte(at: 0)
      guard first == UInt8(ascii: "x") || first == UInt8(ascii: "X"),
        span.byte(at: 1) == UInt8(ascii: "'")
      else { return nil }
      var isHexadecimal = true
      let bytes = unsafe SecretBytes(byteCount: span.byteCount / 2 - 1) { target in
        for index in target.indices {
          guard let byte = byte(span, at: prefixByteCount + 2 * index) else {
            isHexadecimal = false
            return
          }
          unsafe target[index] = byte
        }
      }
      if isHexadecimal { return bytes }
      return nil
    }
  }

  private static func byte(_ span: RawSpan, at offset: Int) -> UInt8? {
    guard let high = digit(span.byte(at: offset)),
      let low = digit(span.byte(at: offset + 1))
    else { return nil }
    return high << 4 | low
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

extension RawSpan {
  /// One byte, within bounds.
  fileprivate func byte(at offset: Int) -> UInt8 {
    unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }
}
