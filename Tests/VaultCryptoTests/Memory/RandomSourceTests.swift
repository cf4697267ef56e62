import Testing
import VaultCrypto

@Suite struct RandomSourceTests {
  /// getentropy(3) gives at most 256 bytes a call: longer requests are put together.
  @Test(arguments: [0, 1, 255, 256, 257, 1000, 100_000])
  func fillsEveryLengthToItsEnd(_ byteCount: Int) {
    let bytes = RandomSource.system.bytes(count: byteCount)
    #expect(bytes.count == byteCount)
    if byteCount >= 255 {
      // 32 zeros in a row at the end of random bytes: once in 2^256.
      #expect(bytes.suffix(32).contains { $0 != 0 })
      #expect(bytes.prefix(32).contains { $0 != 0 })
    }
  }

  @Test func doesNotRepeat() {
    let draws = Set((0..<1000).map { _ in RandomSource.system.bytes(count: 24) })
    #expect(draws.count == 1000)
  }
}
