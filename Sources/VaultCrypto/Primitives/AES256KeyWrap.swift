internal import COpenSSL

/// AES-256 key wrap (RFC 3394): deterministic encryption of a key under another key, with an
/// integrity check of 64 bits.
public enum AES256KeyWrap {
  /// Wraps a key of at least 16 bytes, in multiples of 8; the result is 8 bytes longer.
  public static func wrap(
    _ key: borrowing SecretBytes, with wrappingKey: borrowing SecretBytes
  ) throws(CryptoError) -> [UInt8] {
    guard key.byteCount >= 16, key.byteCount.isMultiple(of: 8),
      let length = Int32(exactly: key.byteCount)
    else { throw CryptoError(.invalidArgument, in: "AES-256 key wrap") }
    let context = try CipherContext.keyed(.aes256Wrap, isEncrypting: true, key: wrappingKey)
    var wrapped = [UInt8](repeating: 0, count: key.byteCount + 8)
    var count: Int32 = 0
    let status = unsafe key.withUnsafeBytes { key in
      unsafe EVP_CipherUpdate(context.pointer, &wrapped, &count, key.octets, length)
    }
    guard status == 1, Int(count) == wrapped.count else {
      throw .failedCall(in: "AES-256 key wrap")
    }
    return wrapped
  }

  /// Unwraps a key.
  ///
  /// - Throws: `authenticationFailed` for a wrong key or changed bytes; `invalidArgument` for
  ///   impossible lengths.
  public static func unwrap(
    _ wrapped: [UInt8], with wrappingKey: borrowing SecretBytes
  ) throws(CryptoError) -> SecretBytes {
    guard wrapped.count >= 24, wrapped.count.isMultiple(of: 8),
      let length = Int32(exactly: wrapped.count)
    else { throw CryptoError(.invalidArgument, in: "AES-256 key unwrap") }
    let context = try CipherContext.keyed(.aes256Wrap, isEncrypting: false, key: wrappingKey)
    // OpenSSL can use the output as scratch space for the whole input.
    let scratch = try unsafe SecretBytes(byteCount: wrapped.count) { (target) throws(CryptoError) in
      var count: Int32 = 0
      let status = unsafe EVP_CipherUpdate(
        context.pointer, target.octets, &count, wrapped, length)
      guard status == 1, Int(count) == wrapped.count - 8 else {
        throw .failedCall(.authenticationFailed, in: "AES-256 key unwrap")
      }
    }
    return scratch.copy(0..<wrapped.count - 8)
  }
}
