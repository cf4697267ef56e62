internal import COpenSSL

/// HKDF (RFC 5869): derives keys for separate purposes from one uniformly random key.
public enum HKDF {
  /// Derives a key with HMAC-SHA-512, by extract and expand.
  ///
  /// - Parameters:
  ///   - salt: can be empty.
  ///   - info: the purpose; different purposes get independent keys.
  ///   - byteCount: 1 to 255 times the length of the digest.
  /// - Throws: `invalidArgument` for a length out of range.
  public static func sha512(
    inputKey: borrowing SecretBytes, salt: [UInt8], info: [UInt8], byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try derive(.sha512, inputKey: inputKey, salt: salt, info: info, byteCount: byteCount)
  }

  /// Derives a key with HMAC-SHA-256; arguments and errors are those of
  /// ``sha512(inputKey:salt:info:byteCount:)``.
  public static func sha256(
    inputKey: borrowing SecretBytes, salt: [UInt8], info: [UInt8], byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try derive(.sha256, inputKey: inputKey, salt: salt, info: info, byteCount: byteCount)
  }

  private static func derive(
    _ digest: Digest, inputKey: borrowing SecretBytes, salt: [UInt8], info: [UInt8], byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    guard byteCount > 0, byteCount <= 255 * digest.byteCount else {
      throw CryptoError(.invalidArgument, in: "HKDF")
    }
    return try unsafe SecretBytes(byteCount: byteCount) { (target) throws(CryptoError) in
      let isDerived = unsafe inputKey.withUnsafeBytes { key in
        unsafe salt.withUnsafeBytes { salt in
          unsafe info.withUnsafeBytes { info in
            unsafe KeyDerivation.hkdf.derive(
              target,
              [
                OSSL_PARAM(digest), OSSL_PARAM("key", key), OSSL_PARAM("salt", salt),
                OSSL_PARAM("info", info),
              ])
          }
        }
      }
      guard isDerived else { throw .failedCall(in: "HKDF") }
    }
  }
}
