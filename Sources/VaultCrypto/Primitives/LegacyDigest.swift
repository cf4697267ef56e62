internal import COpenSSL

/// Digests that old protocols demand, for public bytes.
///
/// Neither resists collisions: they protect nothing, and only name what the other side expects.
public enum LegacyDigest {
  /// MD5 (RFC 1321): 16 bytes.
  ///
  /// Pusher's HTTP API names a body by it.
  public static func md5(_ bytes: RawSpan) throws(CryptoError) -> [UInt8] {
    try digest(bytes, "MD5", byteCount: 16)
  }

  /// SHA-1 (RFC 3174): 20 bytes.
  ///
  /// A WebSocket's handshake uses it.
  public static func sha1(_ bytes: RawSpan) throws(CryptoError) -> [UInt8] {
    try digest(bytes, "SHA1", byteCount: 20)
  }

  private static func digest(
    _ bytes: RawSpan, _ name: String, byteCount: Int
  ) throws(CryptoError) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: byteCount)
    let status = unsafe bytes.withUnsafeBytes { bytes in
      unsafe EVP_Q_digest(nil, name, nil, bytes.baseAddress, bytes.count, &digest, nil)
    }
    guard status == 1 else { throw .failedCall(in: name) }
    return digest
  }
}
