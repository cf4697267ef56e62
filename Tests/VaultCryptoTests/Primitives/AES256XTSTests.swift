import Testing

@testable import VaultCrypto

@Suite struct AES256XTSTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let key, msg, ct: Hex
    let unit: UInt64
    let result: Outcome
  }

  @Test func agreesWithTheStandard() throws {
    var tally = Tally()
    for vector in try VectorFile<Case>(compact: "aes-256-xts").vectors {
      let cipher = try AES256XTS(key: SecretBytes(copying: vector.key.bytes))
      var unit = vector.msg.bytes
      try unit.withUnsafeMutableBytes { try cipher.encrypt($0, tweak: vector.unit) }
      #expect(unit == vector.ct.bytes, "\(vector.name)")
      try unit.withUnsafeMutableBytes { try cipher.decrypt($0, tweak: vector.unit) }
      #expect(unit == vector.msg.bytes, "\(vector.name)")
      tally.matched += 1
    }
    #expect(tally == Tally(matched: 4))
  }

  @Test(arguments: [0, 1, 15])
  func refusesLessThanABlock(_ byteCount: Int) throws {
    let cipher = try AES256XTS(key: SecretBytes.random(byteCount: 64))
    var unit = [UInt8](repeating: 1, count: byteCount)
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256-XTS data unit")) {
      try unit.withUnsafeMutableBytes { try cipher.encrypt($0, tweak: 0) }
    }
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256-XTS data unit")) {
      try unit.withUnsafeMutableBytes { try cipher.decrypt($0, tweak: 0) }
    }
    #expect(unit == [UInt8](repeating: 1, count: byteCount))
  }

  @Test(arguments: [0, 32, 63, 65])
  func refusesAKeyOfAnotherLength(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "cipher key")) {
      _ = try AES256XTS(key: SecretBytes.random(byteCount: byteCount))
    }
  }

  @Test func refusesEqualHalves() {
    let half = RandomSource.system.bytes(count: 32)
    #expect(throws: CryptoError(.libraryFailure, in: "cipher key")) {
      _ = try AES256XTS(key: SecretBytes(copying: half + half))
    }
  }

  @Test func aTweakChangesEverything() throws {
    let cipher = try AES256XTS(key: SecretBytes.random(byteCount: 64))
    var units = Set<[UInt8]>()
    for tweak in [0, 1, 4096, UInt64(UInt32.max), UInt64.max] {
      var unit = [UInt8](repeating: 0, count: 16)
      try unit.withUnsafeMutableBytes { try cipher.encrypt($0, tweak: tweak) }
      units.insert(unit)
    }
    #expect(units.count == 5)
  }
}
