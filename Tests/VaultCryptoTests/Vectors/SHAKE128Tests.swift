import Testing

@Suite struct SHAKE128Tests {
  /// NIST's SHAKE-128 of the empty message.
  @Test func `the digest of the empty message matches the standard`() {
    var sponge = SHAKE128()
    #expect(
      sponge.squeeze(32).hex == "7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26")
  }

  @Test func `absorbing and squeezing in pieces give the same output`() {
    let message = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
    var whole = SHAKE128()
    whole.absorb(message)
    var pieces = SHAKE128()
    for byte in message { pieces.absorb([byte]) }
    let output = whole.squeeze(500)
    #expect((0..<500).flatMap { _ in pieces.squeeze(1) } == output)
  }
}
