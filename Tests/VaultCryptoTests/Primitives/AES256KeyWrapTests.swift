import Testing
import VaultCrypto

@Suite struct AES256KeyWrapTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let key, msg, ct: Hex
    let result: Outcome
  }

  /// Not offered: wrapping keys other than 256 bits.
  ///
  /// The one "acceptable" case wraps 8 bytes, below
  /// RFC 3394's minimum, and is refused.
  @Test func agreesWithTheCompactTable() throws {
    let tally = try run(VectorFile<Case>(compact: "aes-256-key-wrap").vectors)
    #expect(tally == VectorCounts(matched: 9, refused: 18, notOffered: 2))
  }

  @Test(.whereWycheproofIs) func agreesWithAllOfWycheproof() throws {
    let tally = try run(VectorFile<Case>(wycheproof: "aes_wrap_test").vectors)
    #expect(tally == VectorCounts(matched: 13, refused: 55, notOffered: 97))
  }

  private func run(_ cases: [Case]) throws -> VectorCounts {
    var tally = VectorCounts()
    for vector in cases {
      let wrappingKey = SecretBytes(copying: vector.key.bytes)
      let isOffered = vector.key.bytes.count == 32
      if isOffered && vector.result == .valid {
        let wrapped = try AES256KeyWrap.wrap(
          SecretBytes(copying: vector.msg.bytes), with: wrappingKey)
        #expect(wrapped == vector.ct.bytes, "\(vector.name)")
        let unwrapped = try AES256KeyWrap.unwrap(vector.ct.bytes, with: wrappingKey)
        #expect(unwrapped.array == vector.msg.bytes, "\(vector.name)")
        tally.matched += 1
        continue
      }
      #expect(throws: CryptoError.self, "\(vector.name)") {
        _ = try AES256KeyWrap.unwrap(vector.ct.bytes, with: wrappingKey)
      }
      if isOffered { tally.refused += 1 } else { tally.notOffered += 1 }
    }
    return tally
  }

  @Test(arguments: [0, 8, 15, 17, 33])
  func refusesToWrapALengthThatTheStandardLacks(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256 key wrap")) {
      _ = try AES256KeyWrap.wrap(
        SecretBytes.random(byteCount: byteCount), with: SecretBytes.random(byteCount: 32))
    }
  }

  @Test func tellsAWrongKeyFromAWrongLength() throws {
    let wrapped = try AES256KeyWrap.wrap(
      SecretBytes.random(byteCount: 32), with: SecretBytes.random(byteCount: 32))
    #expect(throws: CryptoError(.authenticationFailed, in: "AES-256 key unwrap")) {
      _ = try AES256KeyWrap.unwrap(wrapped, with: SecretBytes.random(byteCount: 32))
    }
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256 key unwrap")) {
      _ = try AES256KeyWrap.unwrap(
        Array(wrapped.dropLast()), with: SecretBytes.random(byteCount: 32))
    }
    #expect(throws: CryptoError(.invalidArgument, in: "cipher key")) {
      _ = try AES256KeyWrap.unwrap(wrapped, with: SecretBytes.random(byteCount: 16))
    }
  }
}
