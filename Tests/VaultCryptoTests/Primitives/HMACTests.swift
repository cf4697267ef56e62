import Testing
import VaultCrypto

@Suite struct HMACTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let key, msg, tag: Hex
    let result: Outcome
  }

  typealias Function = @Sendable (borrowing SecretBytes, [UInt8]) throws -> [UInt8]

  /// Truncated tags are compared with the first bytes of ours.
  @Test func `results match the compact tables`() throws {
    let expected = VectorCounts(matched: 21, refused: 6)
    #expect(try run(VectorFile<Case>(compact: "hmac-sha256").vectors, sha256) == expected)
    #expect(try run(VectorFile<Case>(compact: "hmac-sha512").vectors, sha512) == expected)
  }

  @Test(.whereWycheproofIs) func `results match all Wycheproof cases`() throws {
    let expected = VectorCounts(matched: 66, refused: 108)
    #expect(try run(VectorFile<Case>(wycheproof: "hmac_sha256_test").vectors, sha256) == expected)
    #expect(try run(VectorFile<Case>(wycheproof: "hmac_sha512_test").vectors, sha512) == expected)
  }

  @Test func `an empty key and an empty message are accepted`() throws {
    let code = try sha256(SecretBytes(copying: []), [])
    #expect(code.hex == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
  }

  private let sha256: Function = { key, message in
    try HMAC.sha256(key: key, message: message.span.bytes)
  }

  private let sha512: Function = { key, message in
    try HMAC.sha512(key: key, message: message.span.bytes)
  }

  private func run(_ cases: [Case], _ code: Function) throws -> VectorCounts {
    var counts = VectorCounts()
    for vector in cases {
      let full = try code(SecretBytes(copying: vector.key.bytes), vector.msg.bytes)
      let ours = Array(full.prefix(vector.tag.bytes.count))
      let isEqual = isEqualInConstantTime(ours.span.bytes, vector.tag.bytes.span.bytes)
      #expect(isEqual == (vector.result == .valid), "\(vector.name)")
      if isEqual { counts.matched += 1 } else { counts.refused += 1 }
    }
    return counts
  }
}
