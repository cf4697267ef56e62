internal import COpenSSL

/// HMAC (RFC 2104): an authentication code over a message.
///
/// Compare codes with ``isEqualInConstantTime(_:_:)`` only.
public enum HMAC {
  /// The code under SHA-256: 32 bytes.
  public static func sha256(
    key: borrowing SecretBytes, message: RawSpan
  ) throws(CryptoError) -> [UInt8] {
    try code(.sha256, byteCount: 32, key: key, message: message)
  }

  /// The code under SHA-512: 64 bytes.
  public static func sha512(
    key: borrowing SecretBytes, message: RawSpan
  ) throws(CryptoError) -> [UInt8] {
    try code(.sha512, byteCount: 64, key: key, message: message)
  }

  private static func code(
    _ digest: Digest, byteCount: Int, key: borrowing SecretBytes, message: RawSpan
  ) throws(CryptoError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: byteCount)
    let written = unsafe key.withUnsafeBytes { key in
      unsafe message.withUnsafeBytes { message in
        unsafe EVP_Q_mac(
          nil, "HMAC", nil, digest.name, nil, key.baseAddress, key.count,
          message.baseAddress?.assumingMemoryBound(to: UInt8.self), message.count,
          &code, byteCount, nil)
      }
    }
    guard unsafe written != nil else { throw .refused(.libraryFailure, in: "HMAC") }
    return code
  }
}
