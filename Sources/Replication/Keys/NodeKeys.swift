package import VaultCrypto

/// The keys of one node, which never leave its vault: to open invitations, and to log in to brokers.
///
/// See `docs/reference/replication-format.md`, "A node's keys".
package struct NodeKeys: ~Copyable, Sendable {
  /// The item of the vault that has them, of kind `binary`.
  package static let itemName = "replication.node"

  private static let version: UInt8 = 1
  private static let byteCount = 1 + X25519.byteCount + Ed25519.seedByteCount

  /// All of it, as the item has it.
  private let encoded: SecretBytes

  /// Draws the keys of a new node.
  package init(from random: RandomSource) {
    encoded = unsafe SecretBytes(byteCount: Self.byteCount) { bytes in
      unsafe random.fill(bytes)
      unsafe bytes[0] = Self.version
    }
  }

  /// Reads the bytes of an item.
  ///
  /// - Throws: ``NodeKeysError`` for another version or length.
  package init(decoding bytes: borrowing SecretBytes) throws(NodeKeysError) {
    guard bytes.byteCount == Self.byteCount else { throw .wrongLength }
    guard bytes.withBytes({ $0.number(at: 0, UInt8.self) }) == Self.version else {
      throw .unknownVersion
    }
    encoded = bytes.copy()
  }

  /// The bytes of the item.
  package borrowing func encodedBytes() -> SecretBytes { encoded.copy() }

  /// The member id of the node: the first 16 bytes of the digest of its nkey.
  package borrowing func member() throws(CryptoError) -> MemberID {
    let digest = try Fingerprint.digest(
      "datavault/replication/member", try userKey().publicKey.bytes)
    return MemberID(digest.prefix(MemberID.byteCount).reduce(0) { $0 << 8 | UInt128($1) })
  }

  /// The private key to which invitations are encrypted.
  borrowing func invitationKey() -> SecretBytes { encoded.copy(1..<1 + X25519.byteCount) }

  /// The public key to which a member encrypts an invitation: 32 bytes.
  package borrowing func invitationPublicKey() throws(CryptoError) -> [UInt8] {
    try X25519.publicKey(of: invitationKey())
  }

  /// The key with which the node logs in to brokers.
  package borrowing func userKey() throws(CryptoError) -> NATSUserKey {
    try NATSUserKey(seed: encoded.copy(1 + X25519.byteCount..<Self.byteCount))
  }
}

/// Why a node's keys cannot be read.
package struct NodeKeysError: Error, Sendable, Hashable {
  /// What is wrong.
  package let reason: String

  static let unknownVersion = NodeKeysError(
    reason: "the node's keys have a format version that this version does not know")
  static let wrongLength = NodeKeysError(reason: "the node's keys have a wrong length")
}
