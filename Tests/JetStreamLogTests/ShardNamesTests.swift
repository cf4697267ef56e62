import Replication
import TestSupport
import Testing
import VaultCrypto

@testable import JetStreamLog

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

  @Test(arguments: [
    ("2.9.10", 4), ("2.9.25", 3), ("2.10.27", 1), ("2.11.0", 2), ("2.11.15", 0), ("2.12.5", 1),
    ("2.12.6", 0), ("2.9.10-beta.1", 4), ("3.0.0", 0), ("no version", 0), ("1.2", 0),
  ])
  func `a broker's version gives its warnings`(_ version: String, _ count: Int) {
    #expect(BrokerGreeting.warnings(version: version).count == count)
  }
}
