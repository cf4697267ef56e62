package import VaultCrypto

/// Seals and opens the records of a shard under all keys of its ring.
///
/// A ring that has changed needs a new one. Only one thread at a time can use it.
package final class RingSeal {
  private let seals: CiphersOfRing<RecordSeal>

  package init(_ ring: borrowing KeyRing, random: RandomSource) {
    let shard = ring.shard
    seals = CiphersOfRing(ring) { (number, key) throws(CryptoError) in
      try RecordSeal(shard: shard, key: number, secret: key, random: random)
    }
  }

  /// Seals one part of a record.
  ///
  /// - Parameter key: the number of the shard's current key.
  /// - Throws: ``KeyRingError`` if the ring has no such key; `CryptoError`.
  package func seal(
    _ part: [UInt8], as name: RecordNumber, under key: UInt32
  ) throws -> SealedRecord {
    try seals.cipher(key).seal(part, as: name)
  }

  /// Opens a record under the key that it names.
  ///
  /// - Throws: ``KeyRingError`` if the ring has no such key; the errors of ``RecordSeal/open(_:)``.
  package func open(_ record: SealedRecord) throws -> [UInt8] {
    try seals.cipher(record.key).open(record)
  }
}

/// What was made from each key of a ring, at its first use.
final class CiphersOfRing<Cipher> {
  let shard: ShardID
  private let ring: KeyRing
  private let make: (UInt32, borrowing SecretBytes) throws(CryptoError) -> Cipher
  private var made: [UInt32: Cipher] = [:]

  init(
    _ ring: borrowing KeyRing,
    _ make: @escaping (UInt32, borrowing SecretBytes) throws(CryptoError) -> Cipher
  ) {
    shard = ring.shard
    self.ring = ring.copy()
    self.make = make
  }

  func cipher(_ key: UInt32) throws -> Cipher {
    if let cipher = made[key] { return cipher }
    let cipher = try make(key, ring.key(key))
    made[key] = cipher
    return cipher
  }
}
