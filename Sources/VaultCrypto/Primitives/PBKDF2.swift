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

  /// OpenSSL's PBKDF2, fetched once and kept for the life of the process.
  @safe private struct Function: @unchecked Sendable {
    // Sendable: an EVP_KDF is immutable after the fetch.
    let pointer: OpaquePointer?
    static let fetched = unsafe Function(pointer: EVP_KDF_fetch(nil, "PBKDF2", nil))
  }

  private static func derive(
    _ digest: Digest, password: borrowing SecretBytes, salt: RawSpan, iterationCount: Int,
    byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    guard iterationCount > 0, Int32(exactly: iterationCount) != nil, byteCount > 0,
      Int32(exactly: byteCount) != nil
    else { throw CryptoError(.invalidArgument, in: "PBKDF2") }
    guard let function = unsafe Function.fetched.pointer,
      let context = unsafe EVP_KDF_CTX_new(function)
    else { throw .refused(.libraryFailure, in: "PBKDF2") }
    defer { unsafe forget(context) }
    var name = Array(digest.name.utf8CString)
    var iterations = UInt32(iterationCount)
    var acceptsAnyLength: Int32 = 1  // "pkcs5": RFC 8018's bounds instead of SP 800-132's
    return try unsafe SecretBytes(byteCount: byteCount) { (target) throws(CryptoError) in
      let status = unsafe password.withUnsafeBytes { password in
        unsafe salt.withUnsafeBytes { salt in
          unsafe name.withUnsafeMutableBytes { name in
            unsafe withUnsafeMutableBytes(of: &iterations) { iterations in
              unsafe withUnsafeMutableBytes(of: &acceptsAnyLength) { acceptsAnyLength in
                let parameters = unsafe [
                  OSSL_PARAM("digest", OSSL_PARAM_UTF8_STRING, name.baseAddress, name.count - 1),
                  OSSL_PARAM(
                    "pkcs5", OSSL_PARAM_INTEGER, acceptsAnyLength.baseAddress,
                    acceptsAnyLength.count),
                  OSSL_PARAM(
                    "iter", OSSL_PARAM_UNSIGNED_INTEGER, iterations.baseAddress, iterations.count),
                  OSSL_PARAM(
                    "pass", OSSL_PARAM_OCTET_STRING,
                    UnsafeMutableRawPointer(mutating: password.baseAddress), password.count),
                  OSSL_PARAM(
                    "salt", OSSL_PARAM_OCTET_STRING,
                    UnsafeMutableRawPointer(mutating: salt.baseAddress), salt.count),
                  OSSL_PARAM_construct_end(),
                ]
                return unsafe EVP_KDF_derive(
                  context, target.baseAddress?.assumingMemoryBound(to: UInt8.self), byteCount,
                  parameters)
              }
            }
          }
        }
      }
      guard status == 1 else { throw .refused(.libraryFailure, in: "PBKDF2") }
    }
  }

  /// Releases a context after removing the salt that OpenSSL keeps in it.
  ///
  /// OpenSSL wipes the password with the context, but a salt only when another one replaces it.
  private static func forget(_ context: OpaquePointer) {
    var none: UInt8 = 0
    unsafe withUnsafeMutableBytes(of: &none) { none in
      let parameters = unsafe [
        OSSL_PARAM("salt", OSSL_PARAM_OCTET_STRING, none.baseAddress, none.count),
        OSSL_PARAM_construct_end(),
      ]
      _ = unsafe EVP_KDF_CTX_set_params(context, parameters)
    }
    unsafe EVP_KDF_CTX_free(context)
  }
}
