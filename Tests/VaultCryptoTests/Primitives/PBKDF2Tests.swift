import TestSupport
import Testing
import VaultCrypto

@Suite struct PBKDF2Tests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let password, salt, dk: Hex
    let iterationCount, dkLen: Int
    let result: Outcome
  }

  @Test func `results match the compact tables`() throws {
    try run(VectorFile(compact: "pbkdf2-sha512"), PBKDF2.sha512, matched: 16)
    try run(VectorFile(compact: "pbkdf2-sha256"), PBKDF2.sha256, matched: 12)
  }

  @Test(.whereWycheproofIs) func `results match all Wycheproof cases`() throws {
    try run(VectorFile(wycheproof: "pbkdf2_hmacsha512_test"), PBKDF2.sha512, matched: 58)
    try run(VectorFile(wycheproof: "pbkdf2_hmacsha256_test"), PBKDF2.sha256, matched: 60)
  }

  private func run(
    _ file: VectorFile<Case>,
    _ derive: (borrowing SecretBytes, [UInt8], Int, Int) throws -> SecretBytes,
    matched: Int, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for vector in file.vectors {
      let key = try derive(
        SecretBytes(copying: vector.password.bytes), vector.salt.bytes, vector.iterationCount,
        vector.dkLen)
      #expect(key.array() == vector.dk.bytes, "\(vector.name)")
    }
    #expect(file.vectors.count == matched, sourceLocation: sourceLocation)
  }

  @Test(arguments: [Int.min, -1, 0, Int(Int32.max) + 1, Int.max])
  func `a count out of range is refused`(_ count: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "PBKDF2")) {
      _ = try PBKDF2.sha512(
        password: SecretBytes(copying: [1]), salt: [], iterationCount: count, byteCount: 32)
    }
    #expect(throws: CryptoError(.invalidArgument, in: "PBKDF2")) {
      _ = try PBKDF2.sha512(
        password: SecretBytes(copying: [1]), salt: [], iterationCount: 1, byteCount: count)
    }
  }

  @Test func `an empty password and an empty salt are accepted`() throws {
    let key = try PBKDF2.sha256(
      password: SecretBytes(copying: []), salt: [], iterationCount: 1, byteCount: 32)
    #expect(key.array().hex == "f7ce0b653d2d72a4108cf5abe912ffdd777616dbbb27a70e8204f3ae2d0f6fad")
  }
}
