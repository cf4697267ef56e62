internal import COpenSSL

/// A key of Curve25519 in OpenSSL, made from 32 bytes.
///
/// OpenSSL keeps a private key in its heap until the release, and wipes it then.
@safe struct RawKey: ~Copyable {
  let pointer: OpaquePointer

  /// The names of the algorithms in OpenSSL.
  enum Algorithm: String {
    case x25519 = "X25519"
    case ed25519 = "ED25519"
  }

  static let byteCount = 32

  /// Reads a private key.
  ///
  /// - Throws: `invalidArgument` unless it has 32 bytes.
  init(_ algorithm: Algorithm, privateKey: borrowing SecretBytes) throws(CryptoError) {
    guard privateKey.byteCount == Self.byteCount else {
      throw CryptoError(.invalidArgument, in: "\(algorithm.rawValue) private key")
    }
    let key = unsafe privateKey.withUnsafeBytes { bytes in
      unsafe EVP_PKEY_new_raw_private_key_ex(
        nil, algorithm.rawValue, nil, bytes.octets, bytes.count)
    }
    guard let key = unsafe key else {
      throw .failedCall(in: "\(algorithm.rawValue) private key")
    }
    unsafe pointer = key
  }

  /// Reads a public key.
  ///
  /// - Throws: `invalidArgument` unless it has 32 bytes.
  init(_ algorithm: Algorithm, publicKey: [UInt8]) throws(CryptoError) {
    guard publicKey.count == Self.byteCount else {
      throw CryptoError(.invalidArgument, in: "\(algorithm.rawValue) public key")
    }
    let key = unsafe EVP_PKEY_new_raw_public_key_ex(
      nil, algorithm.rawValue, nil, publicKey, publicKey.count)
    guard let key = unsafe key else {
      throw .failedCall(in: "\(algorithm.rawValue) public key")
    }
    unsafe pointer = key
  }

  /// The public key: 32 bytes.
  func publicKey() throws(CryptoError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.byteCount)
    var count = bytes.count
    guard unsafe EVP_PKEY_get_raw_public_key(pointer, &bytes, &count) == 1, count == bytes.count
    else { throw .failedCall(in: "public key") }
    return bytes
  }

  deinit {
    unsafe EVP_PKEY_free(pointer)
  }
}
