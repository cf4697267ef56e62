internal import COpenSSL

/// AES-256-GCM (SP 800-38D) with 96-bit nonces and 128-bit tags.
///
/// A nonce must never repeat under one key. For many messages under one key use ``XAES256GCM``.
public enum AES256GCM {
  /// The length of a nonce in bytes.
  public static let nonceByteCount = 12
  /// The length of a tag in bytes.
  public static let tagByteCount = 16

  /// The result of sealing: the ciphertext and the tag.
  public struct SealedBox: Sendable, Equatable {
    /// The ciphertext, as long as the plaintext.
    public var ciphertext: [UInt8]
    /// The tag, 16 bytes.
    public var tag: [UInt8]

    /// Makes a box from its parts.
    public init(ciphertext: [UInt8], tag: [UInt8]) {
      self.ciphertext = ciphertext
      self.tag = tag
    }
  }

  /// Encrypts and authenticates a plaintext.
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
    guard isSealed else { throw .failedCall(in: "AES-256-GCM seal") }
    return box
  }

  /// Verifies and decrypts a box.
  ///
  /// - Throws: `authenticationFailed` if the tag is wrong, after the plaintext has been wiped;
  ///   `invalidArgument` for wrong lengths.
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
        throw .failedCall(.authenticationFailed, in: "AES-256-GCM open")
      }
    }
  }
}

/// GCM messages, one at a time, through a keyed context: the four EVP calls, for pointers.
///
/// See EVP_EncryptInit(3), "GCM and OCB modes".
struct GCMMessage: ~Copyable {
  let context: CipherContext

  /// Encrypts `plaintext` to `output`, which can be the same memory, and writes the tag.
  func seal(
    _ plaintext: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?,
    nonce: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer, tag: UnsafeMutableRawBufferPointer
  ) -> Bool {
    var count: Int32 = 0
    guard unsafe begin(nonce: nonce, aad: aad),
      unsafe transform(plaintext, into: output),
      unsafe EVP_CipherFinal_ex(context.pointer, tag.octets, &count) == 1
    else { return false }
    return unsafe EVP_CIPHER_CTX_ctrl(
      context.pointer, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), tag.baseAddress) == 1
  }

  /// Decrypts `ciphertext` to `output`, which can be the same memory.
  ///
  /// It returns false if the tag is wrong, and then wipes the output.
  func open(
    _ ciphertext: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?,
    nonce: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer
  ) -> Bool {
    var count: Int32 = 0
    var unused: UInt8 = 0
    let isAuthentic =
      unsafe begin(nonce: nonce, aad: aad, expecting: tag)
      && transform(ciphertext, into: output)
      && EVP_CipherFinal_ex(context.pointer, &unused, &count) == 1
    if !isAuthentic, let output = unsafe output {
      unsafe OPENSSL_cleanse(output, ciphertext.count)
    }
    return isAuthentic
  }

  /// Starts a message: with a tag, a message to open; without, a message to seal.
  private func begin(
    nonce: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer,
    expecting tag: UnsafeRawBufferPointer? = nil
  ) -> Bool {
    guard nonce.count == AES256GCM.nonceByteCount, let aadLength = Int32(exactly: aad.count) else {
      return false
    }
    let isReady: Int32
    if let tag = unsafe tag {
      var parameters = unsafe (OSSL_PARAM("tag", tag), OSSL_PARAM_construct_end())
      isReady = unsafe withUnsafeBytes(of: &parameters) { parameters in
        unsafe EVP_CipherInit_ex2(
          context.pointer, nil, nil, nonce.octets, 0,
          parameters.baseAddress?.assumingMemoryBound(to: OSSL_PARAM.self))
      }
    } else {
      isReady = unsafe EVP_CipherInit_ex2(context.pointer, nil, nil, nonce.octets, 1, nil)
    }
    var count: Int32 = 0
    return unsafe isReady == 1
      && (aad.isEmpty
        || EVP_CipherUpdate(context.pointer, nil, &count, aad.octets, aadLength) == 1)
  }

  private func transform(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?
  ) -> Bool {
    var count: Int32 = 0
    if input.count == 0 { return true }
    // Without an output, OpenSSL would treat the text as associated data and not transform it.
    guard let length = Int32(exactly: input.count), let output = unsafe output else {
      return false
    }
    return unsafe EVP_CipherUpdate(
      context.pointer, output.assumingMemoryBound(to: UInt8.self), &count, input.octets, length)
      == 1
  }
}
