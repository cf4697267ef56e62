internal import COpenSSL

/// PBKDF2 (RFC 8018, section 5.2): a key from a password, slow on purpose.
public enum PBKDF2 {
  /// Derives a key with HMAC-SHA-512.
  ///
  /// - Parameters:
  ///   - salt: any length; SP 800-132 wants at least 16 random bytes in it.
  ///   - iterationCount: 1 to `Int32.max`; the caller bounds what a file may ask for.
  ///   - byteCount: the length of the key.
  /// - Throws: `invalidArgument` for a count outside its range.
  public static func sha512(
    password: borrowing SecretBytes, salt: [UInt8], iterationCount: Int, byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try derive(
      .sha512, password: password, salt: salt, iterationCount: iterationCount, byteCount: byteCount)
  }

  /// Derives a key with HMAC-SHA-256; arguments and errors as ``sha512(password:salt:iterationCount:byteCount:)``.
  public static func sha256(
    password: borrowing SecretBytes, salt: [UInt8], iterationCount: Int, byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try derive(
      .sha256, password: password, salt: salt, iterationCount: iterationCount, byteCount: byteCount)
  }

  private static func derive(
    _ digest: Digest, password: borrowing SecretBytes, salt: [UInt8], iterationCount: Int,
    byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    guard let iterations = Int32(exactly: iterationCount), iterations > 0,
      let length = Int32(exactly: byteCount), length > 0,
      let passwordLength = Int32(exactly: password.byteCount),
      let saltLength = Int32(exactly: salt.count)
    else { throw CryptoError(.invalidArgument, in: "PBKDF2") }
    return try unsafe SecretBytes(byteCount: byteCount) { (target) throws(CryptoError) in
      let status = unsafe password.withUnsafeBytes { password in
        unsafe PKCS5_PBKDF2_HMAC(
          password.baseAddress?.assumingMemoryBound(to: CChar.self), passwordLength,
          salt, saltLength, iterations, digest.pointer,
          length, target.baseAddress?.assumingMemoryBound(to: UInt8.self))
      }
      guard status == 1 else { throw .refused(.libraryFailure, in: "PBKDF2") }
    }
  }
}
