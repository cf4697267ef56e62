internal import COpenSSL

/// The Concat KDF of JOSE (RFC 7518, section 4.6.2): a key from a shared secret.
///
/// It is the one-step KDF of SP 800-56A with SHA-256. OpenSSL calls it SSKDF.
public enum ConcatKDF {
  /// Derives a key of up to 32 bytes.
  ///
  /// - Parameters:
  ///   - sharedSecret: the result of a key agreement, such as ``X25519``.
  ///   - algorithm: the name of the algorithm that uses the key.
  ///   - sender: JOSE's `apu`, decoded; can be empty.
  ///   - recipient: JOSE's `apv`, decoded; can be empty.
  /// - Throws: `invalidArgument` for a length out of range.
  public static func sha256(
    sharedSecret: borrowing SecretBytes, algorithm: String, sender: [UInt8], recipient: [UInt8],
    byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    guard byteCount > 0, byteCount <= Digest.sha256.byteCount else {
      throw CryptoError(.invalidArgument, in: "Concat KDF")
    }
    let parts = [Array(algorithm.utf8), sender, recipient]
    let info = parts.flatMap { length($0.count) + $0 } + length(8 * byteCount)
    return try unsafe SecretBytes(byteCount: byteCount) { (target) throws(CryptoError) in
      let isDerived = unsafe sharedSecret.withUnsafeBytes { secret in
        unsafe info.withUnsafeBytes { info in
          unsafe KeyDerivation.oneStep.derive(
            target, [OSSL_PARAM(.sha256), OSSL_PARAM("key", secret), OSSL_PARAM("info", info)])
        }
      }
      guard isDerived else { throw .failedCall(in: "Concat KDF") }
    }
  }

  /// A length in 32 bits, big endian.
  private static func length(_ count: Int) -> [UInt8] {
    unsafe withUnsafeBytes(of: UInt32(count).bigEndian) { unsafe Array($0) }
  }
}
