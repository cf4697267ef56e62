import Testing
import VaultCrypto

@Suite struct ConstantTimeTests {
  @Test func `isEqualInConstantTime() distinguishes equal from unequal bytes`() {
    let bytes = RandomSource.system.bytes(count: 100)
    for index in bytes.indices {
      var other = bytes
      other[index] ^= 1
      #expect(!isEqual(bytes, other))
    }
    let same = bytes.map { $0 }
    #expect(isEqual(bytes, same))
  }

  @Test func `sequences of different lengths are unequal`() {
    let none: [UInt8] = []
    let zero: [UInt8] = [0]
    #expect(isEqual(none, none))
    #expect(!isEqual(none, zero))
    #expect(!isEqual(zero, none))
  }

  /// A function of its own, because `#expect` cannot capture a span.
  private func isEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    isEqualInConstantTime(a.span.bytes, b.span.bytes)
  }
}
