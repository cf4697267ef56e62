import TestSupport
import Testing
import VaultCrypto

@Suite struct ConcatKDFTests {
  /// RFC 7518, appendix C.
  private static let sharedSecret: [UInt8] = [
    158, 86, 217, 29, 129, 113, 53, 211, 114, 131, 66, 131, 191, 132, 38, 156,
    251, 49, 110, 163, 218, 128, 106, 72, 246, 218, 167, 121, 140, 254, 144, 196,
  ]

  @Test func `a key matches RFC 7518`() throws {
    let key = try derive(byteCount: 16)
    #expect(key.array().hex == "56aa8deaf8236d205c2228cd71a7101a")
  }

  @Test func `the length is a part of what the key is for`() throws {
    let short = try derive(byteCount: 16)
    let long = try derive(byteCount: 32)
    #expect(Array(long.array().prefix(16)) != short.array())
  }

  @Test(arguments: [-1, 0, 33])
  func `a length out of range is refused`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "Concat KDF")) {
      _ = try derive(byteCount: byteCount)
    }
  }

  private func derive(byteCount: Int) throws -> SecretBytes {
    try ConcatKDF.sha256(
      sharedSecret: SecretBytes(copying: Self.sharedSecret), algorithm: "A128GCM",
      sender: Array("Alice".utf8), recipient: Array("Bob".utf8), byteCount: byteCount)
  }
}
