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

  /// OpenSSL's HKDF, fetched once and kept for the life of the process.
  @safe private struct Function: @unchecked Sendable {
    // Sendable: an EVP_KDF is immutable after the fetch.
    let pointer: OpaquePointer?
    static let fetched = unsafe Function(pointer: EVP_KDF_fetch(nil, "HKDF", nil))
  }

  private static func derive(
    _ digest: Digest, inputKey: borrowing SecretBytes, salt: [UInt8], info: [UInt8], byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    guard byteCount > 0, byteCount <= 255 * digest.byteCount else {
      throw CryptoError(.invalidArgument, in: "HKDF")
    }
    guard let function = unsafe Function.fetched.pointer,
      let context = unsafe EVP_KDF_CTX_new(function)
    else { throw .refused(.libraryFailure, in: "HKDF") }
    defer { unsafe EVP_KDF_CTX_free(context) }
    var name = Array(digest.name.utf8CString)
    var salt = salt
    var info = info
    return try unsafe SecretBytes(byteCount: byteCount) { (target) throws(CryptoError) in
      let status = unsafe inputKey.withUnsafeBytes { key in
        unsafe name.withUnsafeMutableBytes { name in
          unsafe salt.withUnsafeMutableBytes { salt in
            unsafe info.withUnsafeMutableBytes { info in
              // The parameters point to the caller's memory. OpenSSL wipes its own copy of the key
              // with the context.
              let parameters = unsafe [
                OSSL_PARAM("digest", OSSL_PARAM_UTF8_STRING, name.baseAddress, name.count - 1),
                OSSL_PARAM(
                  "key", OSSL_PARAM_OCTET_STRING,
                  UnsafeMutableRawPointer(mutating: key.baseAddress), key.count),
                OSSL_PARAM("salt", OSSL_PARAM_OCTET_STRING, salt.baseAddress, salt.count),
                OSSL_PARAM("info", OSSL_PARAM_OCTET_STRING, info.baseAddress, info.count),
                OSSL_PARAM_construct_end(),
              ]
              return unsafe EVP_KDF_derive(
                context, target.baseAddress?.assumingMemoryBound(to: UInt8.self), byteCount,
                parameters)
            }
          }
        }
      }
      guard status == 1 else { throw .refused(.libraryFailure, in: "HKDF") }
    }
  }
}
