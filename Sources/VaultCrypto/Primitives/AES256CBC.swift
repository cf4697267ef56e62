internal import COpenSSL

/// AES-256-CBC (SP 800-38A) of whole blocks, without padding.
///
/// It encrypts without authentication, for formats that add an authentication code of their own.
/// Both key schedules are computed once. Only one thread at a time can use it.
public final class AES256CBC {
  /// The length of a key in bytes.
  public static let keyByteCount = 32
  /// The length of an initialization vector in bytes.
  public static let ivByteCount = 16

  private let encryption: CipherContext
  private let decryption: CipherContext

  /// Prepares both directions.
  ///
  /// - Throws: `invalidArgument` unless the key has 32 bytes.
  public init(key: borrowing SecretBytes) throws(CryptoError) {
    encryption = try .keyed(.aes256CBC, isEncrypting: true, key: key)
    decryption = try .keyed(.aes256CBC, isEncrypting: false, key: key)
    unsafe EVP_CIPHER_CTX_set_padding(encryption.pointer, 0)
    unsafe EVP_CIPHER_CTX_set_padding(decryption.pointer, 0)
  }

  /// Encrypts `message` in place; arguments and errors are those of ``encrypt(_:into:iv:)``.
  package func encrypt(_ message: inout [UInt8], iv: [UInt8]) throws(CryptoError) {
    try transform(&message, iv, encryption, isEncrypting: 1)
  }

  /// Decrypts `message` in place; arguments and errors are those of ``encrypt(_:into:iv:)``.
  package func decrypt(_ message: inout [UInt8], iv: [UInt8]) throws(CryptoError) {
    try transform(&message, iv, decryption, isEncrypting: 0)
  }

  /// Encrypts `plaintext` into `output`, which must have room for as many bytes.
  ///
  /// The two buffers must be the same memory or must not overlap.
  ///
  /// - Parameter iv: 16 unpredictable bytes.
  /// - Throws: `invalidArgument` for an incomplete block or a vector of another length.
  package func encrypt(
    _ plaintext: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer,
    iv: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    try unsafe transform(plaintext, output, iv, encryption, isEncrypting: 1)
  }

  /// Decrypts `ciphertext` into `output`; arguments and errors are those of
  /// ``encrypt(_:into:iv:)``.
  package func decrypt(
    _ ciphertext: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer,
    iv: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    try unsafe transform(ciphertext, output, iv, decryption, isEncrypting: 0)
  }

  private func transform(
    _ message: inout [UInt8], _ iv: [UInt8], _ context: borrowing CipherContext, isEncrypting: Int32
  ) throws(CryptoError) {
    var span = message.mutableSpan
    var bytes = unsafe span.mutableBytes
    try unsafe bytes.withUnsafeMutableBytes { (message) throws(CryptoError) in
      guard let start = message.baseAddress else { return }
      try unsafe iv.span.bytes.withUnsafeBytes { (iv) throws(CryptoError) in
        try unsafe transform(
          UnsafeRawBufferPointer(message), start, iv, context, isEncrypting: isEncrypting)
      }
    }
  }

  private func transform(
    _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawPointer,
    _ iv: UnsafeRawBufferPointer, _ context: borrowing CipherContext, isEncrypting: Int32
  ) throws(CryptoError) {
    guard input.count % 16 == 0, iv.count == Self.ivByteCount,
      let length = Int32(exactly: input.count)
    else { throw CryptoError(.invalidArgument, in: "AES-256-CBC") }
    var count: Int32 = 0
    let isDone =
      unsafe EVP_CipherInit_ex2(context.pointer, nil, nil, iv.octets, isEncrypting, nil) == 1
      && EVP_CipherUpdate(
        context.pointer, output.assumingMemoryBound(to: UInt8.self), &count, input.octets, length)
        == 1
    guard isDone, Int(count) == input.count else {
      throw .failedCall(in: "AES-256-CBC")
    }
  }
}
