internal import COpenSSL

/// Ed25519 (RFC 8032): signatures of 64 bytes, without a random number.
public enum Ed25519 {
  /// The length of a seed, which is the private key, in bytes.
  public static let seedByteCount = 32
  /// The length of a public key in bytes.
  public static let publicKeyByteCount = 32
  /// The length of a signature in bytes.
  public static let signatureByteCount = 64

  /// The public key of a seed: 32 bytes.
  ///
  /// - Throws: `invalidArgument` unless the seed has 32 bytes.
  public static func publicKey(ofSeed seed: borrowing SecretBytes) throws(CryptoError) -> [UInt8] {
    try RawKey(.ed25519, privateKey: seed).publicKey()
  }

  /// Signs a message.
  ///
  /// - Throws: `invalidArgument` unless the seed has 32 bytes.
  public static func sign(
    _ message: [UInt8], seed: borrowing SecretBytes
  ) throws(CryptoError) -> [UInt8] {
    let key = try RawKey(.ed25519, privateKey: seed)
    let context = try DigestContext()
    var signature = [UInt8](repeating: 0, count: signatureByteCount)
    var count = signature.count
    guard unsafe EVP_DigestSignInit_ex(context.pointer, nil, nil, nil, nil, key.pointer, nil) == 1,
      unsafe EVP_DigestSign(context.pointer, &signature, &count, message, message.count) == 1,
      count == signature.count
    else { throw .failedCall(in: "Ed25519 sign") }
    return signature
  }

  /// Checks a signature.
  ///
  /// - Throws: `authenticationFailed` if it is wrong; `invalidArgument` unless the public key has
  ///   32 bytes and the signature 64.
  public static func verify(
    _ signature: [UInt8], of message: [UInt8], publicKey: [UInt8]
  ) throws(CryptoError) {
    guard signature.count == signatureByteCount else {
      throw CryptoError(.invalidArgument, in: "Ed25519 signature")
    }
    let key = try RawKey(.ed25519, publicKey: publicKey)
    let context = try DigestContext()
    guard unsafe EVP_DigestVerifyInit_ex(context.pointer, nil, nil, nil, nil, key.pointer, nil) == 1
    else { throw .failedCall(in: "Ed25519 verify") }
    guard
      unsafe EVP_DigestVerify(
        context.pointer, signature, signature.count, message, message.count) == 1
    else { throw .failedCall(.authenticationFailed, in: "Ed25519 verify") }
  }
}

/// A context for one signature.
@safe private struct DigestContext: ~Copyable {
  let pointer: OpaquePointer

  init() throws(CryptoError) {
    guard let pointer = unsafe EVP_MD_CTX_new() else { throw .failedCall(in: "Ed25519") }
    unsafe self.pointer = pointer
  }

  deinit {
    unsafe EVP_MD_CTX_free(pointer)
  }
}
