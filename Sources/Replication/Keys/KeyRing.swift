package import VaultCrypto

/// The secrets of a shard: where its streams get their names from, and the keys of its records.
///
/// Each member keeps it in an item of its vault. See `docs/reference/replication-format.md`, "Key ring".
package struct KeyRing: ~Copyable, Sendable {
  /// The item of the vault that has it, of kind `binary`.
  package static let itemName = "replication.ring"
  /// The most keys.
  package static let mostKeys = 64
  /// The length of a key, and of the naming secret, in bytes.
  package static let keyByteCount = 32

  private static let version: UInt8 = 1
  private static let namingOffset = 1 + ShardID.byteCount
  private static let oldestOffset = namingOffset + keyByteCount
  private static let countOffset = oldestOffset + 4
  private static let headerByteCount = countOffset + 1

  package let shard: ShardID
  /// The numbers of the keys, at least one.
  package private(set) var keyNumbers: ClosedRange<UInt32>
  /// All of it, as the item has it.
  private var encoded: SecretBytes

  private init(shard: ShardID, keyNumbers: ClosedRange<UInt32>, encoded: consuming SecretBytes) {
    self.shard = shard
    self.keyNumbers = keyNumbers
    self.encoded = encoded
  }

  /// Draws the ring of a new shard, with key 1.
  package init(newShard random: RandomSource) {
    let encoded = unsafe SecretBytes(byteCount: Self.headerByteCount + Self.keyByteCount) { bytes in
      unsafe random.fill(bytes)
      unsafe Self.writeHeader(1...1, to: bytes)
    }
    let shard = encoded.withBytes { ShardID($0.number(at: 1)) }
    self.init(shard: shard, keyNumbers: 1...1, encoded: encoded)
  }

  /// Reads the bytes of an item.
  ///
  /// - Throws: ``KeyRingError`` for another version, a number or a count out of range, and another length.
  package init(decoding bytes: borrowing SecretBytes) throws(KeyRingError) {
    guard bytes.byteCount >= Self.headerByteCount else { throw .wrongLength }
    let (version, shard, oldest, count) = bytes.withBytes { bytes in
      (
        bytes.number(at: 0, UInt8.self), ShardID(bytes.number(at: 1)),
        bytes.number(at: Self.oldestOffset, UInt32.self),
        bytes.number(at: Self.countOffset, UInt8.self)
      )
    }
    guard version == Self.version else { throw .unknownVersion }
    guard (1...Self.mostKeys).contains(Int(count)), oldest > 0,
      UInt32.max - oldest >= UInt32(count) - 1
    else { throw .numbersOutOfRange }
    guard bytes.byteCount == Self.headerByteCount + Int(count) * Self.keyByteCount else {
      throw .wrongLength
    }
    self.init(
      shard: shard, keyNumbers: oldest...oldest + (UInt32(count) - 1), encoded: bytes.copy())
  }

  /// The bytes of the item.
  package borrowing func encodedBytes() -> SecretBytes { encoded.copy() }

  package borrowing func copy() -> KeyRing {
    KeyRing(shard: shard, keyNumbers: keyNumbers, encoded: encoded.copy())
  }

  /// The secret from which the names of streams and subjects are derived; it never changes.
  package borrowing func namingSecret() -> SecretBytes {
    encoded.copy(Self.namingOffset..<Self.oldestOffset)
  }

  /// The key with a number.
  ///
  /// - Throws: `noKey`.
  package borrowing func key(_ number: UInt32) throws(KeyRingError) -> SecretBytes {
    guard keyNumbers.contains(number) else { throw .noKey(number) }
    return encoded.copy(range(of: number))
  }

  /// The key of a copy of a member's database for a joiner, under the newest key.
  package borrowing func copyKey(for joiner: MemberID) throws -> SecretBytes {
    var info = RecordWriter()
    info.append(Array("datavault/replication/copy".utf8))
    info.append(joiner)
    return try HKDF.sha512(
      inputKey: key(keyNumbers.upperBound), salt: [], info: info.bytes,
      byteCount: Self.keyByteCount)
  }

  /// Adds a random key with the next number.
  ///
  /// Records are sealed under it after a key switch, when all members have it.
  ///
  /// - Throws: `full`.
  package mutating func addKey(from random: RandomSource) throws(KeyRingError) {
    guard keyNumbers.count < Self.mostKeys, keyNumbers.upperBound < UInt32.max else {
      throw .full
    }
    let numbers = keyNumbers.lowerBound...keyNumbers.upperBound + 1
    unsafe replaceKeys(numbers) { target in unsafe random.fill(target) }
  }

  /// Removes the keys with lower numbers; the newest stays in any case.
  package mutating func removeKeys(before number: UInt32) {
    let oldest = min(max(number, keyNumbers.lowerBound), keyNumbers.upperBound)
    guard oldest > keyNumbers.lowerBound else { return }
    unsafe replaceKeys(oldest...keyNumbers.upperBound) { _ in }
  }

  /// Takes the newer keys of a ring that another member has handed on.
  ///
  /// - Throws: `otherShard` unless the shard, its naming secret and all keys that both have are the same;
  ///   `notConsecutive` if it begins after the next number; `full`. Nothing has changed then.
  package mutating func adoptNewerKeys(of other: borrowing KeyRing) throws(KeyRingError) {
    guard shard == other.shard, SecretBytes.isEqual(namingSecret(), other.namingSecret()) else {
      throw .otherShard
    }
    let first = max(keyNumbers.lowerBound, other.keyNumbers.lowerBound)
    let last = min(keyNumbers.upperBound, other.keyNumbers.upperBound)
    for number in stride(from: first, through: last, by: 1) {
      guard SecretBytes.isEqual(try key(number), try other.key(number)) else { throw .otherShard }
    }
    guard other.keyNumbers.upperBound > keyNumbers.upperBound else { return }
    guard other.keyNumbers.lowerBound <= keyNumbers.upperBound + 1 else { throw .notConsecutive }
    let numbers = keyNumbers.lowerBound...other.keyNumbers.upperBound
    guard numbers.count <= Self.mostKeys else { throw .full }
    let added = keyNumbers.upperBound + 1...other.keyNumbers.upperBound
    let tail = other.encoded.copy(
      other.range(of: added.lowerBound).lowerBound..<other.encoded.byteCount)
    unsafe replaceKeys(numbers) { target in
      unsafe tail.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    }
  }

  /// Keeps the keys that have these numbers, and lets `body` write those that there are none of yet.
  private mutating func replaceKeys(
    _ numbers: ClosedRange<UInt32>, _ body: (UnsafeMutableRawBufferPointer) -> Void
  ) {
    let kept =
      range(of: numbers.lowerBound).lowerBound..<range(of: keyNumbers.upperBound).upperBound
    var next = SecretBytes(zeroCount: Self.headerByteCount + numbers.count * Self.keyByteCount)
    unsafe next.withUnsafeMutableBytes { target in
      unsafe encoded.withUnsafeBytes { source in
        unsafe target.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: source[..<Self.headerByteCount]))
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[Self.headerByteCount...])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[kept]))
      }
      unsafe body(
        UnsafeMutableRawBufferPointer(rebasing: target[(Self.headerByteCount + kept.count)...]))
      unsafe Self.writeHeader(numbers, to: target)
    }
    keyNumbers = numbers
    encoded = next
  }

  private static func writeHeader(
    _ numbers: ClosedRange<UInt32>, to target: UnsafeMutableRawBufferPointer
  ) {
    unsafe target[0] = version
    for index in 0..<4 {
      unsafe target[oldestOffset + index] = UInt8(
        truncatingIfNeeded: numbers.lowerBound >> UInt32(8 * (3 - index)))
    }
    unsafe target[countOffset] = UInt8(numbers.count)
  }

  private borrowing func range(of number: UInt32) -> Range<Int> {
    let start =
      Self.headerByteCount + Int(number - keyNumbers.lowerBound) * Self.keyByteCount
    return start..<start + Self.keyByteCount
  }
}

/// Why a key ring cannot be read or changed.
package struct KeyRingError: Error, Sendable, Hashable {
  /// What is wrong.
  package let reason: String

  static let unknownVersion = KeyRingError(
    reason: "the key ring has a format version that this version does not know")
  static let wrongLength = KeyRingError(reason: "the key ring has a wrong length")
  static let numbersOutOfRange = KeyRingError(
    reason: "the key ring has no keys, too many, or numbers out of range")
  static let full = KeyRingError(
    reason: "the key ring has no room for another key: drop old keys first")
  static let otherShard = KeyRingError(
    reason: "the key ring is of another shard, or has other keys under the same numbers")
  static let notConsecutive = KeyRingError(
    reason: "the key ring lacks keys that follow those of this node: hand it on again")

  static func noKey(_ number: UInt32) -> KeyRingError {
    KeyRingError(reason: "the key ring has no key \(number)")
  }
}

extension RawSpan {
  /// The big-endian number at an offset; the bounds are checked.
  func number<Number: FixedWidthInteger & UnsignedInteger>(
    at offset: Int, _: Number.Type = Number.self
  ) -> Number {
    var value: Number = 0
    for index in offset..<offset + Number.bitWidth / 8 {
      let byte = unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self)
      value = Number.bitWidth > 8 ? value << 8 | Number(byte) : Number(byte)
    }
    return value
  }
}
