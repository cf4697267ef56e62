internal import COpenSSL

/// X25519 (RFC 7748): two parties who know each other's public key get the same secret.
///
/// The secret is not uniformly random. Derive a key from it, as ``ConcatKDF`` does.
public enum X25519 {
  /// The length of a private key, a public key and a shared secret in bytes.
  public static let byteCount = 32

  /// A new private key: 32 random bytes.
  public static func privateKey(from random: RandomSource = .system) -> SecretBytes {
    .random(byteCount: byteCount, from: random)
  }

  /// The public key of a private key: 32 bytes.
  ///
  /// - Throws: `invalidArgument` unless the private key has 32 bytes.
  public static func publicKey(of privateKey: borrowing SecretBytes) throws(CryptoError) -> [UInt8]
  {
    try RawKey(.x25519, privateKey: privateKey).publicKey()
  }

  /// The secret that this private key shares with a public key: 32 bytes.
  ///
  /// - Throws: `invalidArgument` unless both keys have 32 bytes, and for a public key of small
  ///   order, with which each private key would give 32 zero bytes (RFC 7748, section 6.1).
  public static func sharedSecret(
    _ privateKey: borrowing SecretBytes, with publicKey: [UInt8]
  ) throws(CryptoError) -> SecretBytes {
    let own = try RawKey(.x25519, privateKey: privateKey)
    let other = try RawKey(.x25519, publicKey: publicKey)
    guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, own.pointer, nil) else {
      throw .failedCall(in: "X25519")
    }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    guard unsafe EVP_PKEY_derive_init(context) == 1,
      unsafe EVP_PKEY_derive_set_peer_ex(context, other.pointer, 0) == 1
    else { throw .failedCall(in: "X25519") }
    let secret = try unsafe SecretBytes(byteCount: byteCount) { (target) throws(CryptoError) in
      var count = target.count
      // OpenSSL fails if the result is zero.
      guard unsafe EVP_PKEY_derive(context, target.octets, &count) == 1, count == target.count
      else { throw .failedCall(.invalidArgument, in: "X25519 public key") }
    }
    // Not every implementation behind OpenSSL looks at the result.
    guard !SecretBytes.isEqual(secret, SecretBytes(zeroCount: byteCount)) else {
      throw CryptoError(.invalidArgument, in: "X25519 public key")
    }
    return secret
  }
}
