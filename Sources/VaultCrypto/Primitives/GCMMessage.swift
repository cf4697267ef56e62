internal import COpenSSL

/// One GCM message at a time through a keyed context: the four EVP calls, for pointers.
///
/// See EVP_EncryptInit(3), "GCM and OCB modes".
struct GCMMessage: ~Copyable {
  let context: CipherContext

  /// Encrypts `plaintext` to `output` (in place where they are the same) and writes the tag.
  func seal(
    _ plaintext: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?,
    nonce: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer, tag: UnsafeMutableRawBufferPointer
  ) -> Bool {
    var count: Int32 = 0
    guard unsafe begin(nonce: nonce, aad: aad),
      unsafe transform(plaintext, into: output),
      unsafe EVP_CipherFinal_ex(
        context.pointer, tag.baseAddress?.assumingMemoryBound(to: UInt8.self), &count) == 1
    else { return false }
    return unsafe EVP_CIPHER_CTX_ctrl(
      context.pointer, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), tag.baseAddress) == 1
  }

  /// Decrypts `ciphertext` to `output` (in place where they are the same).
  ///
  /// Returns false when the tag does not fit; the output is then wiped.
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

  /// Starts a message: one to open where its tag is given, one to seal otherwise.
  private func begin(
    nonce: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer,
    expecting tag: UnsafeRawBufferPointer? = nil
  ) -> Bool {
    guard nonce.count == AES256GCM.nonceByteCount, let aadLength = Int32(exactly: aad.count) else {
      return false
    }
    let nonce = unsafe nonce.baseAddress?.assumingMemoryBound(to: UInt8.self)
    let isReady: Int32
    if let tag = unsafe tag {
      var parameters = unsafe (
        OSSL_PARAM(
          "tag", OSSL_PARAM_OCTET_STRING, UnsafeMutableRawPointer(mutating: tag.baseAddress),
          tag.count),
        OSSL_PARAM_construct_end()
      )
      isReady = unsafe withUnsafeBytes(of: &parameters) { parameters in
        unsafe EVP_CipherInit_ex2(
          context.pointer, nil, nil, nonce, 0,
          parameters.baseAddress?.assumingMemoryBound(to: OSSL_PARAM.self))
      }
    } else {
      isReady = unsafe EVP_CipherInit_ex2(context.pointer, nil, nil, nonce, 1, nil)
    }
    var count: Int32 = 0
    return unsafe isReady == 1
      && (aad.isEmpty
        || EVP_CipherUpdate(
          context.pointer, nil, &count, aad.baseAddress?.assumingMemoryBound(to: UInt8.self),
          aadLength) == 1)
  }

  private func transform(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?
  ) -> Bool {
    var count: Int32 = 0
    if input.count == 0 { return true }
    // Without an output, OpenSSL would take the text for associated data and leave it as it is.
    guard let length = Int32(exactly: input.count), let output = unsafe output else {
      return false
    }
    return unsafe EVP_CipherUpdate(
      context.pointer, output.assumingMemoryBound(to: UInt8.self), &count,
      input.baseAddress?.assumingMemoryBound(to: UInt8.self), length) == 1
  }
}
