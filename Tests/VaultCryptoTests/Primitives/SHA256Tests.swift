import Testing
import VaultCrypto

@Suite struct SHA256Tests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let msg, digest: Hex
  }

  @Test func `results match the published vectors`() throws {
    let cases = try VectorFile<Case>(compact: "sha256").vectors
    #expect(cases.count == 6)
    for vector in cases {
      let digest = try SHA256.digest(vector.msg.bytes.span.bytes)
      #expect(digest == vector.digest.bytes, "\(vector.name)")
      let secret = try SHA256.digest(of: SecretBytes(copying: vector.msg.bytes))
      let isEqual = SecretBytes.isEqual(secret, SecretBytes(copying: digest))
      #expect(isEqual, "\(vector.name)")
    }
  }

  /// FIPS 180-4's long example: the letter a, a million times.
  @Test(arguments: [1_000_000, 1000, 64, 1])
  func `a message in pieces has the same digest`(_ pieceByteCount: Int) throws {
    let piece = [UInt8](repeating: 0x61, count: pieceByteCount)
    var hash = try SHA256()
    let total = pieceByteCount == 1 ? 1000 : 1_000_000
    for _ in 0..<total / pieceByteCount { try hash.update(piece.span.bytes) }
    let digest = try hash.finalize()
    let expected =
      total == 1_000_000
      ? "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
      : "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"
    #expect(digest.hex == expected)
  }
}
