internal import COpenSSL

/// PBKDF2 (RFC 8018, section 5.2): derives a key from a password, slowly on purpose.
public enum PBKDF2 {
  /// Derives a key with HMAC-SHA-512.
  ///
  /// - Parameters:
  ///   - salt: any length; SP 800-132 requires at least 16 random bytes in it.
  ///   - iterationCount: 1 to `Int32.max`; the caller must limit a count that comes from a file.
  ///   - byteCount: the length of the key in bytes.
  /// - Throws: `invalidArgument` for a count outside its range.
  public static func sha512(
    password: borrowing SecretBytes, salt: [UInt8], iterationCount: Int, byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try unsafe derive(
      .sha512, password: password, salt: salt.span.bytes, iterationCount: iterationCount,
      byteCount: byteCount)
  }

  /// As ``sha512(password:salt:iterationCount:byteCount:)-([UInt8])``, for a salt that is secret.
  public static func sha512(
    password: borrowing SecretBytes, salt: borrowing SecretBytes, iterationCount: Int,
    byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try salt.withBytes { (salt) throws(CryptoError) in
      try derive(
        .sha512, password: password, salt: salt, iterationCount: iterationCount,
        byteCount: byteCount)
    }
  }

  /// Derives a key with HMAC-SHA-256; arguments and errors are those of SHA-512.
  public static func sha256(
    password: borrowing SecretBytes, salt: [UInt8], iterationCount: Int, byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try unsafe derive(
      .sha256, password: password, salt: salt.span.bytes, iterationCount: iterationCount,
      byteCount: byteCount)
  }

  private static func derive(
    _ digest: Digest, password: borrowing SecretBytes, salt: RawSpan, iterationCount: Int,
    byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    guard iterationCount > 0, Int32(exactly: iterationCount) != nil, byteCount > 0,
      Int32(exactly: byteCount) != nil
    else { throw CryptoError(.invalidArgument, in: "PBKDF2") }
    var iterations = UInt32(iterationCount)
    var acceptsAnyLength: Int32 = 1  // "pkcs5": RFC 8018's bounds instead of SP 800-132's
    return try unsafe SecretBytes(byteCount: byteCount) { (target) throws(CryptoError) in
      let isDerived = unsafe password.withUnsafeBytes { password in
        unsafe salt.withUnsafeBytes { salt in
          unsafe withUnsafeBytes(of: &iterations) { iterations in
            unsafe withUnsafeBytes(of: &acceptsAnyLength) { acceptsAnyLength in
              unsafe KeyDerivation.pbkdf2.derive(
                target,
                [
                  OSSL_PARAM(digest), OSSL_PARAM("pkcs5", acceptsAnyLength, OSSL_PARAM_INTEGER),
                  OSSL_PARAM("iter", iterations, OSSL_PARAM_UNSIGNED_INTEGER),
                  OSSL_PARAM("pass", password), OSSL_PARAM("salt", salt),
                ])
            }
          }
        }
      }
      guard isDerived else { throw .failedCall(in: "PBKDF2") }
    }
  }
}
