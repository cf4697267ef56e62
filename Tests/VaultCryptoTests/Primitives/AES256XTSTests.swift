import Testing

@testable import VaultCrypto

@Suite struct AES256XTSTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let key, msg, ct: Hex
    let unit: UInt64
  }

  /// The first block of a data unit does not depend on the following blocks.
  @Test func `results match the published vectors`() throws {
    var counts = VectorCounts()
    for vector in try VectorFile<Case>(compact: "aes-256-xts").vectors {
      let cipher = try AES256XTS(key: SecretBytes(copying: vector.key.bytes))
      var unit = Array(vector.msg.bytes.prefix(16))
      try unit.withUnsafeMutableBytes { try cipher.encrypt($0.baseAddress!, tweak: vector.unit) }
      #expect(unit == Array(vector.ct.bytes.prefix(16)), "\(vector.name)")
      try unit.withUnsafeMutableBytes { try cipher.decrypt($0.baseAddress!, tweak: vector.unit) }
      #expect(unit == Array(vector.msg.bytes.prefix(16)), "\(vector.name)")
      counts.matched += 1
    }
    #expect(counts == VectorCounts(matched: 4))
  }

  @Test(arguments: [0, 32, 63, 65])
  func `a key of another length is refused`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256-XTS key")) {
      _ = try AES256XTS(key: SecretBytes.random(byteCount: byteCount))
    }
  }

  @Test func `a key with equal halves is refused`() {
    let half = RandomSource.system.bytes(count: 32)
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256-XTS key")) {
      _ = try AES256XTS(key: SecretBytes(copying: half + half))
    }
  }

  @Test func `different tweaks give different ciphertexts`() throws {
    let cipher = try AES256XTS(key: SecretBytes.random(byteCount: 64))
    var units = Set<[UInt8]>()
    for tweak in [0, 1, 4096, UInt64(UInt32.max), UInt64.max] {
      var unit = [UInt8](repeating: 0, count: 16)
      try unit.withUnsafeMutableBytes { try cipher.encrypt($0.baseAddress!, tweak: tweak) }
      units.insert(unit)
    }
    #expect(units.count == 5)
  }
}
