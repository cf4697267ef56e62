import JetStreamLog
import Replication
import TestSupport
import Testing
import VaultCrypto

@Suite struct ShardNamesTests {
  @Test func `the names are those of another implementation`() throws {
    let shard = [UInt8](repeating: 0xAB, count: 16)
    let ring = [1] + shard + Array(0..<32) + [0, 0, 0, 1, 1] + [UInt8](repeating: 7, count: 32)
    let names = try ShardNames(KeyRing(decoding: SecretBytes(copying: ring)))
    // python3: hmac.new(bytes(range(32)), b"datavault/replication/names", "sha256").hexdigest()[:32]
    #expect(names.stream == "DV_00419c8e10373f6f6aaa5461ec2d3b7f")
    #expect(names.records == "dv.00419c8e10373f6f6aaa5461ec2d3b7f.r")
    #expect(
      names.requests(to: MemberID(0x0A_BC)) == "dv.00419c8e10373f6f6aaa5461ec2d3b7f.m.abc")
  }

  @Test func `the names do not have the shard's id`() throws {
    let ring = KeyRing(newShard: .system)
    let names = try ShardNames(ring)
    let id = String(ring.shard.value, radix: 16)
    for name in [names.stream, names.records, names.requests(to: MemberID(1))] {
      #expect(!name.contains(id))
    }
  }
}
