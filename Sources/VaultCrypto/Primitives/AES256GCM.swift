internal import COpenSSL

/// AES-256-GCM (SP 800-38D) with 96-bit nonces and 128-bit tags.
///
/// A nonce must never repeat under one key. For many messages under one key use ``XAES256GCM``.
public enum AES256GCM {
  /// The length of a nonce in bytes.
  public static let nonceByteCount = 12
  /// The length of a tag in bytes.
  public static let tagByteCount = 16

  /// What sealing gives: as many ciphertext bytes as plaintext, and the tag.
  public struct SealedBox: Sendable, Equatable {
    /// As long as the plaintext.
    public var ciphertext: [UInt8]
    /// 16 bytes.
    public var tag: [UInt8]

    /// Puts the parts together.
    public init(ciphertext: [UInt8], tag: [UInt8]) {
      self.ciphertext = ciphertext
      self.tag = tag
    }
  }

  /// Encrypts and authenticates.
  ///
  /// - Throws: `invalidArgument` unless the key has 32 bytes and the nonce 12.
  public static func seal(
    _ plaintext: RawSpan, key: borrowing SecretBytes, nonce: [UInt8], authenticating aad: RawSpan
  ) throws(CryptoError) -> SealedBox {
    guard nonce.count == nonceByteCount else {
      throw CryptoError(.invalidArgument, in: "AES-256-GCM nonce")
    }
    let message = GCMMessage(
      context: try CipherContext.keyed(.aes256GCM, isEncrypting: true, key: key))
    var box = SealedBox(
      ciphertext: [UInt8](repeating: 0, count: plaintext.byteCount),
      tag: [UInt8](repeating: 0, count: tagByteCount))
    let isSealed = unsafe plaintext.withUnsafeBytes { plaintext in
      unsafe aad.withUnsafeBytes { aad in
        unsafe box.ciphertext.withUnsafeMutableBytes { ciphertext in
          unsafe box.tag.withUnsafeMutableBytes { tag in
            unsafe nonce.withUnsafeBytes { nonce in
              unsafe message.seal(
                plaintext, into: ciphertext.baseAddress, nonce: nonce, aad: aad, tag: tag)
            }
          }
        }
      }
    }
    guard isSealed else { throw .refused(.libraryFailure, in: "AES-256-GCM seal") }
    return box
  }

  /// Verifies and decrypts.
  ///
  /// - Throws: `authenticationFailed` when the tag does not fit, with nothing of the plaintext
  ///   left behind; `invalidArgument` for wrong lengths.
  public static func open(
    _ box: SealedBox, key: borrowing SecretBytes, nonce: [UInt8], authenticating aad: RawSpan
  ) throws(CryptoError) -> SecretBytes {
    guard nonce.count == nonceByteCount, box.tag.count == tagByteCount else {
      throw CryptoError(.invalidArgument, in: "AES-256-GCM nonce or tag")
    }
    let message = GCMMessage(
      context: try CipherContext.keyed(.aes256GCM, isEncrypting: false, key: key))
    return try unsafe SecretBytes(byteCount: box.ciphertext.count) {
      (plaintext) throws(CryptoError) in
      let isAuthentic = unsafe aad.withUnsafeBytes { aad in
        unsafe box.ciphertext.withUnsafeBytes { ciphertext in
          unsafe box.tag.withUnsafeBytes { tag in
            unsafe nonce.withUnsafeBytes { nonce in
              unsafe message.open(
                ciphertext, into: plaintext.baseAddress, nonce: nonce, aad: aad, tag: tag)
            }
          }
        }
      }
      guard isAuthentic else {
        throw .refused(.authenticationFailed, in: "AES-256-GCM open")
      }
    }
  }
}
