import Replication
import Testing
import VaultCrypto

@Suite struct SealTests {
  private static func seal(shard: UInt128 = 1, key: UInt32 = 1, byte: UInt8 = 7) throws
    -> RecordSeal
  {
    let secret = SecretBytes(copying: [UInt8](repeating: byte, count: 32))
    return try RecordSeal(shard: ShardID(shard), key: key, secret: secret, random: .system)
  }

  private static let name = RecordNumber(AuthorID(3), 4)
  private static let part: [UInt8] = [0, 1, 2, 3]

  @Test func `a sealed record opens, and its header is read`() throws {
    let record = try Self.seal().seal(Self.part, as: Self.name)
    let read = try SealedRecord(parsing: record.bytes)
    #expect(read == record)
    #expect(read.name == Self.name)
    #expect(try Self.seal().open(read) == Self.part)
    #expect(
      record.bytes.count == SealedRecord.headerByteCount + RecordSeal.overheadByteCount
        + Self.part.count)
  }

  @Test func `a record with one changed byte does not open`() throws {
    let record = try Self.seal().seal(Self.part, as: Self.name)
    for index in record.bytes.indices {
      var bytes = record.bytes
      bytes[index] ^= 1
      #expect(throws: (any Error).self, "byte \(index)") {
        try Self.seal().open(SealedRecord(parsing: bytes))
      }
    }
  }

  @Test func `a record of another shard or under another key does not open`() throws {
    let record = try Self.seal().seal(Self.part, as: Self.name)
    #expect(throws: CryptoError.self) { try Self.seal(shard: 2).open(record) }
    #expect(throws: CryptoError.self) { try Self.seal(key: 2).open(record) }
    #expect(throws: CryptoError.self) { try Self.seal(byte: 8).open(record) }
  }

  @Test func `a record that is cut is refused`() throws {
    let record = try Self.seal().seal(Self.part, as: Self.name)
    for count in record.bytes.indices {
      #expect(throws: (any Error).self) {
        try Self.seal().open(SealedRecord(parsing: Array(record.bytes[..<count])))
      }
    }
  }
}
