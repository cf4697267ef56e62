internal import COpenSSL

/// A cipher, fetched from OpenSSL once and kept for the life of the process.
@safe struct Cipher: @unchecked Sendable {
  // Sendable: an EVP_CIPHER is immutable after the fetch.
  let pointer: OpaquePointer

  static let aes256GCM = Cipher("AES-256-GCM")
  static let aes256CBC = Cipher("AES-256-CBC")
  static let aes256ECB = Cipher("AES-256-ECB")
  static let aes256Wrap = Cipher("AES-256-WRAP")

  private init(_ name: String) {
    guard let pointer = unsafe EVP_CIPHER_fetch(nil, name, nil) else {
      preconditionFailure("OpenSSL's providers lack \(name)")
    }
    unsafe self.pointer = pointer
  }
}

/// A cipher context under one key; OpenSSL wipes the key schedule when the context is released.
///
/// Until then the schedule, which reveals the key, is in OpenSSL's heap. Unlike a ``SecretBytes``,
/// that heap is neither locked nor excluded from core dumps.
///
/// Only one thread at a time can use it.
@safe struct CipherContext: ~Copyable {
  let pointer: OpaquePointer

  init() throws(CryptoError) {
    guard let pointer = unsafe EVP_CIPHER_CTX_new() else {
      throw .failedCall(in: "cipher context")
    }
    unsafe self.pointer = pointer
  }

  /// A context for a cipher whose keys are set later, any number of times.
  static func awaitingKeys(of cipher: Cipher) throws(CryptoError) -> CipherContext {
    let context = try CipherContext()
    guard unsafe EVP_CipherInit_ex2(context.pointer, cipher.pointer, nil, nil, 1, nil) == 1 else {
      throw .failedCall(in: "cipher context")
    }
    return context
  }

  /// A context that encrypts or decrypts under `key`; each message sets its nonce, if any.
  static func keyed(
    _ cipher: Cipher, isEncrypting: Bool, key: borrowing SecretBytes
  ) throws(CryptoError) -> CipherContext {
    guard unsafe key.byteCount == Int(EVP_CIPHER_get_key_length(cipher.pointer)) else {
      throw CryptoError(.invalidArgument, in: "cipher key")
    }
    let context = try CipherContext()
    let status = unsafe key.withUnsafeBytes { key in
      unsafe EVP_CipherInit_ex2(
        context.pointer, cipher.pointer, key.octets, nil, isEncrypting ? 1 : 0, nil)
    }
    guard status == 1 else { throw .failedCall(in: "cipher key") }
    return context
  }

  /// Runs a block cipher over whole blocks in place, each by itself.
  ///
  /// - Returns: false if OpenSSL failed.
  func encipher(_ blocks: UnsafeMutableRawBufferPointer) -> Bool {
    var count: Int32 = 0
    let bytes = unsafe blocks.octets
    return unsafe EVP_CipherUpdate(pointer, bytes, &count, bytes, Int32(blocks.count)) == 1
      && Int(count) == blocks.count
  }

  deinit {
    unsafe EVP_CIPHER_CTX_free(pointer)
  }
}
