import TestSupport
import Testing
import VaultCrypto

@Suite struct HKDFTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let ikm, salt, info, okm: Hex
    let size: Int
    let result: Outcome
  }

  @Test func `results match the compact tables`() throws {
    try run(VectorFile(compact: "hkdf-sha256"), HKDF.sha256, matched: 13, refused: 0)
    try run(VectorFile(compact: "hkdf-sha512"), HKDF.sha512, matched: 24, refused: 3)
  }

  @Test(.whereWycheproofIs) func `results match all Wycheproof cases`() throws {
    try run(VectorFile(wycheproof: "hkdf_sha256_test"), HKDF.sha256, matched: 83, refused: 3)
    try run(VectorFile(wycheproof: "hkdf_sha512_test"), HKDF.sha512, matched: 80, refused: 3)
  }

  private func run(
    _ file: VectorFile<Case>,
    _ derive: (borrowing SecretBytes, [UInt8], [UInt8], Int) throws -> SecretBytes,
    matched: Int, refused: Int, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    var counts = VectorCounts()
    for vector in file.vectors {
      let inputKey = SecretBytes(copying: vector.ikm.bytes)
      if vector.result == .valid {
        let key = try derive(inputKey, vector.salt.bytes, vector.info.bytes, vector.size)
        #expect(key.array() == vector.okm.bytes, "\(vector.name)")
        counts.matched += 1
      } else {
        #expect(throws: CryptoError(.invalidArgument, in: "HKDF"), "\(vector.name)") {
          _ = try derive(inputKey, vector.salt.bytes, vector.info.bytes, vector.size)
        }
        counts.refused += 1
      }
    }
    let expected = VectorCounts(matched: matched, refused: refused)
    #expect(counts == expected, sourceLocation: sourceLocation)
  }

  @Test(arguments: [Int.min, -1, 0, 255 * 64 + 1, Int.max])
  func `a length out of range is refused`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "HKDF")) {
      _ = try HKDF.sha512(
        inputKey: SecretBytes.random(byteCount: 32), salt: [], info: [], byteCount: byteCount)
    }
  }

  /// The longest info that our formats could use, and one that exceeds OpenSSL 3.0's limit.
  @Test func `a long info is accepted, and a too long one is refused`() throws {
    let inputKey = SecretBytes.random(byteCount: 32)
    _ = try HKDF.sha512(
      inputKey: inputKey, salt: [1], info: [UInt8](repeating: 7, count: 1024), byteCount: 32)
    #expect(throws: CryptoError(.libraryFailure, in: "HKDF")) {
      _ = try HKDF.sha512(
        inputKey: inputKey, salt: [1], info: [UInt8](repeating: 7, count: 100_000), byteCount: 32)
    }
  }

  @Test func `an empty salt equals a salt of zeros`() throws {
    let inputKey = SecretBytes.random(byteCount: 32)
    let empty = try HKDF.sha512(inputKey: inputKey, salt: [], info: [1], byteCount: 32)
    let zeros = try HKDF.sha512(
      inputKey: inputKey, salt: [UInt8](repeating: 0, count: 64), info: [1], byteCount: 32)
    #expect(empty.array() == zeros.array())
  }
}
