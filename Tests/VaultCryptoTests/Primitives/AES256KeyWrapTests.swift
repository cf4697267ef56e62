import TestSupport
import Testing
import VaultCrypto

@Suite struct AES256KeyWrapTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let key, msg, ct: Hex
    let result: Outcome
  }

  /// Not supported: wrapping keys other than 256 bits.
  ///
  /// The one "acceptable" case wraps 8 bytes, which is below RFC 3394's minimum, and is refused.
  @Test func `results match the compact table`() throws {
    let counts = try run(VectorFile<Case>(compact: "aes-256-key-wrap").vectors)
    #expect(counts == VectorCounts(matched: 9, refused: 18, notOffered: 2))
  }

  @Test(.whereWycheproofIs) func `results match all Wycheproof cases`() throws {
    let counts = try run(VectorFile<Case>(wycheproof: "aes_wrap_test").vectors)
    #expect(counts == VectorCounts(matched: 13, refused: 55, notOffered: 97))
  }

  private func run(_ cases: [Case]) throws -> VectorCounts {
    var counts = VectorCounts()
    for vector in cases {
      let wrappingKey = SecretBytes(copying: vector.key.bytes)
      let isOffered = vector.key.bytes.count == 32
      if isOffered && vector.result == .valid {
        let wrapped = try AES256KeyWrap.wrap(
          SecretBytes(copying: vector.msg.bytes), with: wrappingKey)
        #expect(wrapped == vector.ct.bytes, "\(vector.name)")
        let unwrapped = try AES256KeyWrap.unwrap(vector.ct.bytes, with: wrappingKey)
        #expect(unwrapped.array() == vector.msg.bytes, "\(vector.name)")
        counts.matched += 1
        continue
      }
      #expect(throws: CryptoError.self, "\(vector.name)") {
        _ = try AES256KeyWrap.unwrap(vector.ct.bytes, with: wrappingKey)
      }
      if isOffered { counts.refused += 1 } else { counts.notOffered += 1 }
    }
    return counts
  }

  @Test(arguments: [0, 8, 15, 17, 33])
  func `a key of a length outside the standard is not wrapped`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256 key wrap")) {
      _ = try AES256KeyWrap.wrap(
        SecretBytes.random(byteCount: byteCount), with: SecretBytes.random(byteCount: 32))
    }
  }

  @Test func `a wrong key and a wrong length have separate errors`() throws {
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
