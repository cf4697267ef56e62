import Testing
import VaultCrypto

@Suite struct RandomSourceTests {
  /// getentropy(3) returns at most 256 bytes for each call, so longer requests need several calls.
  @Test(arguments: [RandomSource.system, .unshared()], [0, 1, 255, 256, 257, 1000, 100_000])
  func `a source fills buffers of every length`(_ source: RandomSource, _ byteCount: Int) {
    let bytes = source.bytes(count: byteCount)
    #expect(bytes.count == byteCount)
    if byteCount >= 255 {
      // Random bytes end with 32 zeros once in 2^256.
      #expect(bytes.suffix(32).contains { $0 != 0 })
      #expect(bytes.prefix(32).contains { $0 != 0 })
    }
  }

  @Test(arguments: [[RandomSource.system], [.unshared(), .unshared(), .unshared()]])
  func `sources do not repeat values`(_ sources: [RandomSource]) {
    let draws = Set((0..<1000).flatMap { _ in sources.map { $0.bytes(count: 24) } })
    #expect(draws.count == 1000 * sources.count)
  }
}
