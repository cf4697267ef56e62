import Replication
import TestSupport
import Testing
import VaultCrypto

@Suite struct KeyRingTests {
  private static func ring(keys: Int = 1) throws -> KeyRing {
    var ring = KeyRing(newShard: .system)
    for _ in 1..<keys { try ring.addKey(from: .system) }
    return ring
  }

  private static func keys(of ring: borrowing KeyRing) throws -> [UInt32: [UInt8]] {
    var keys: [UInt32: [UInt8]] = [:]
    for number in ring.keyNumbers { keys[number] = try ring.key(number).array() }
    return keys
  }

  @Test func `a new ring has key 1 and secrets that no other ring has`() throws {
    let ring = KeyRing(newShard: .system)
    let other = KeyRing(newShard: .system)
    #expect(ring.keyNumbers == 1...1)
    let secrets = [
      ring.namingSecret().array(), try ring.key(1).array(), other.namingSecret().array(),
      try other.key(1).array(),
    ]
    #expect(Set(secrets).count == 4)
    #expect(secrets.allSatisfy { $0.count == 32 })
    #expect(ring.shard != other.shard)
  }

  @Test func `the bytes are those of the specification`() throws {
    let counting = RandomSource { target in
      for index in target.indices { target[index] = UInt8(index) }
    }
    let ring = KeyRing(newShard: counting)
    let bytes =
      [1] + Array(UInt8(1)...48) + [0, 0, 0, 1] + [1] + Array(UInt8(54)...85)
    #expect(ring.encodedBytes().array() == bytes)
    #expect(ring.shard == ShardID(0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10))
    #expect(ring.namingSecret().array() == Array(17...48))
    #expect(try ring.key(1).array() == Array(54...85))
  }

  @Test func `a ring is read as it was written`() throws {
    var ring = try Self.ring(keys: 5)
    ring.removeKeys(before: 3)
    let read = try KeyRing(decoding: ring.encodedBytes())
    #expect(read.shard == ring.shard)
    #expect(read.keyNumbers == 3...5)
    #expect(try Self.keys(of: read) == Self.keys(of: ring))
    #expect(read.namingSecret().array() == ring.namingSecret().array())
  }

  @Test func `added keys get the next numbers, and the others stay`() throws {
    var ring = try Self.ring()
    var earlier = try Self.keys(of: ring)
    for number in UInt32(2)...64 {
      try ring.addKey(from: .system)
      let keys = try Self.keys(of: ring)
      #expect(ring.keyNumbers == 1...number)
      #expect(keys.filter { $0.key < number } == earlier)
      #expect(Set(keys.values).count == Int(number))
      earlier = keys
    }
    #expect(throws: KeyRingError.self) { try ring.addKey(from: .system) }
    ring.removeKeys(before: 64)
    try ring.addKey(from: .system)
    #expect(ring.keyNumbers == 64...65)
    #expect(try ring.key(64).array() == earlier[64])
  }

  @Test func `old keys are removed, but never the newest`() throws {
    var ring = try Self.ring(keys: 4)
    let keys = try Self.keys(of: ring)
    ring.removeKeys(before: 1)
    #expect(ring.keyNumbers == 1...4)
    ring.removeKeys(before: 3)
    #expect(try Self.keys(of: ring) == keys.filter { $0.key >= 3 })
    #expect(throws: KeyRingError.self) { _ = try ring.key(2) }
    #expect(throws: KeyRingError.self) { _ = try ring.key(5) }
    ring.removeKeys(before: 100)
    #expect(try Self.keys(of: ring) == keys.filter { $0.key == 4 })
  }

  @Test func `a ring of another length, version or count is refused`() throws {
    let bytes = try Self.ring(keys: 2).encodedBytes().array()
    for count in bytes.indices {
      #expect(throws: KeyRingError.self, "\(count) bytes") {
        _ = try KeyRing(decoding: SecretBytes(copying: Array(bytes[..<count])))
      }
    }
    let changes: [(offset: Int, byte: UInt8)] = [
      (0, 0), (0, 2), (53, 0), (53, 1), (53, 3), (53, 65),
    ]
    for (offset, byte) in changes {
      var changed = bytes
      changed[offset] = byte
      #expect(throws: KeyRingError.self, "\(byte) at \(offset)") {
        _ = try KeyRing(decoding: SecretBytes(copying: changed))
      }
    }
    #expect(throws: KeyRingError.self) {
      _ = try KeyRing(decoding: SecretBytes(copying: bytes + [0]))
    }
  }

  @Test(arguments: [
    ([0, 0, 0, 0] as [UInt8], false), ([255, 255, 255, 255], false),
    ([255, 255, 255, 254], true),
  ])
  func `key numbers are from 1 to the greatest of 32 bits`(_ oldest: [UInt8], _ isRead: Bool) throws
  {
    var bytes = try Self.ring(keys: 2).encodedBytes().array()
    bytes.replaceSubrange(49..<53, with: oldest)
    let changed = SecretBytes(copying: bytes)
    guard isRead else {
      #expect(throws: KeyRingError.self) { _ = try KeyRing(decoding: changed) }
      return
    }
    var ring = try KeyRing(decoding: changed)
    #expect(throws: KeyRingError.self) { try ring.addKey(from: .system) }
    #expect(ring.keyNumbers.upperBound == .max)
  }

  @Test func `a member adopts newer keys, and keeps what it has`() throws {
    var ring = try Self.ring(keys: 3)
    var newer = ring.copy()
    try newer.addKey(from: .system)
    try newer.addKey(from: .system)
    newer.removeKeys(before: 3)
    let keys = try Self.keys(of: ring).merging(Self.keys(of: newer)) { $1 }
    try ring.adoptNewerKeys(of: newer)
    #expect(ring.keyNumbers == 1...5)
    #expect(try Self.keys(of: ring) == keys)
    try newer.adoptNewerKeys(of: ring)
    #expect(newer.keyNumbers == 3...5)
  }

  @Test func `a ring that contradicts is not adopted`() throws {
    let ring = try Self.ring(keys: 2)
    var bytes = ring.encodedBytes().array()
    for offset in [1, 16, 17, 48, 54, 86, 117] {
      bytes[offset] ^= 1
      var other = try KeyRing(decoding: SecretBytes(copying: bytes))
      try other.addKey(from: .system)
      var target = ring.copy()
      #expect(throws: KeyRingError.self, "byte \(offset)") {
        try target.adoptNewerKeys(of: other)
      }
      #expect(target.encodedBytes().array() == ring.encodedBytes().array())
      bytes[offset] ^= 1
    }
    var later = ring.copy()
    for _ in 0..<2 { try later.addKey(from: .system) }
    later.removeKeys(before: 4)
    var target = ring.copy()
    #expect(throws: KeyRingError.self) { try target.adoptNewerKeys(of: later) }
  }

  @Test func `a ring opens records of all its keys, and of no other`() throws {
    var ring = try Self.ring(keys: 3)
    let name = RecordNumber(AuthorID(1), 1)
    let seal = RingSeal(ring, random: .system)
    let records = try (UInt32(1)...3).map { try seal.seal([7], as: name, under: $0) }
    #expect(records.map(\.key) == [1, 2, 3])
    for record in records { #expect(try seal.open(record) == [7]) }
    #expect(throws: KeyRingError.self) { try seal.seal([7], as: name, under: 4) }
    ring.removeKeys(before: 3)
    let later = RingSeal(ring, random: .system)
    #expect(try later.open(records[2]) == [7])
    #expect(throws: KeyRingError.self) { try later.open(records[1]) }
    let single = try RecordSeal(
      shard: ring.shard, key: 3, secret: ring.key(3), random: .system)
    #expect(try single.open(records[2]) == [7])
  }
}
