package import VaultCrypto

/// The key with which a node logs in to NATS brokers: an nkey of a user.
///
/// It signs, and gives its public key. Its seed stays in the vault.
package struct NATSUserKey: ~Copyable, Sendable {
  package let publicKey: NATSPublicKey
  private let seed: SecretBytes

  init(seed: consuming SecretBytes) throws(CryptoError) {
    publicKey = NATSPublicKey(bytes: try Ed25519.publicKey(ofSeed: seed))
    self.seed = seed
  }

  /// Signs the nonce of a broker: 64 bytes.
  package borrowing func sign(_ nonce: [UInt8]) throws(CryptoError) -> [UInt8] {
    try Ed25519.sign(nonce, seed: seed)
  }
}

/// The public key of a NATS user, by which brokers know a node.
package struct NATSPublicKey: Sendable, Hashable {
  /// The first byte of the encoding of a user's public key, which makes `U` its first character.
  private static let userPrefix: UInt8 = 20 << 3

  /// The Ed25519 public key, 32 bytes.
  package let bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Reads the form of NATS; nil unless it is a user's public key with the right checksum.
  package init?(_ text: String) {
    guard let decoded = Base32.decode(text), decoded.count == 1 + Ed25519.publicKeyByteCount + 2,
      decoded[0] == Self.userPrefix, Self.checksum(decoded.dropLast(2)) == decoded.suffix(2)
    else { return nil }
    bytes = Array(decoded.dropFirst().dropLast(2))
  }

  /// The form of NATS: 56 characters, the first of which is `U`.
  package var text: String {
    let checked = [Self.userPrefix] + bytes
    return Base32.encode(checked + Self.checksum(checked[...]))
  }

  /// CRC-16/XMODEM (polynomial 0x1021, from 0), the low byte first.
  private static func checksum(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var crc: UInt16 = 0
    for byte in bytes {
      crc ^= UInt16(byte) << 8
      for _ in 0..<8 { crc = crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
    }
    return [UInt8(truncatingIfNeeded: crc), UInt8(truncatingIfNeeded: crc >> 8)]
  }
}
