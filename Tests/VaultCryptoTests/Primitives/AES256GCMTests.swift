import TestSupport
import Testing
import VaultCrypto

@Suite struct AES256GCMTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let key, iv, aad, msg, ct, tag: Hex
    let result: Outcome
  }

  /// Not supported: keys other than 256 bits and nonces other than 96 bits.
  @Test func `results match the compact table`() throws {
    let counts = try run(VectorFile<Case>(compact: "aes-256-gcm").vectors)
    #expect(counts == VectorCounts(matched: 14, refused: 6, notOffered: 32))
  }

  @Test(.whereWycheproofIs) func `results match all Wycheproof cases`() throws {
    let counts = try run(VectorFile<Case>(wycheproof: "aes_gcm_test").vectors)
    #expect(counts == VectorCounts(matched: 39, refused: 27, notOffered: 250))
  }

  private func run(_ cases: [Case]) throws -> VectorCounts {
    var counts = VectorCounts()
    for vector in cases {
      let key = SecretBytes(copying: vector.key.bytes)
      let box = AES256GCM.SealedBox(ciphertext: vector.ct.bytes, tag: vector.tag.bytes)
      let aad = vector.aad.bytes
      guard vector.key.bytes.count == 32, vector.iv.bytes.count == 12 else {
        #expect(throws: CryptoError.self, "\(vector.name)") {
          try AES256GCM.seal(
            vector.msg.bytes.span.bytes, key: key, nonce: vector.iv.bytes,
            authenticating: aad.span.bytes)
        }
        #expect(throws: CryptoError.self, "\(vector.name)") {
          _ = try AES256GCM.open(
            box, key: key, nonce: vector.iv.bytes, authenticating: aad.span.bytes)
        }
        counts.notOffered += 1
        continue
      }
      switch vector.result {
      case .valid:
        let sealed = try AES256GCM.seal(
          vector.msg.bytes.span.bytes, key: key, nonce: vector.iv.bytes,
          authenticating: aad.span.bytes)
        #expect(sealed == box, "\(vector.name)")
        let opened = try AES256GCM.open(
          box, key: key, nonce: vector.iv.bytes, authenticating: aad.span.bytes)
        #expect(opened.array() == vector.msg.bytes, "\(vector.name)")
        counts.matched += 1
      case .invalid, .acceptable:
        #expect(
          throws: CryptoError(.authenticationFailed, in: "AES-256-GCM open"), "\(vector.name)"
        ) {
          _ = try AES256GCM.open(
            box, key: key, nonce: vector.iv.bytes, authenticating: aad.span.bytes)
        }
        counts.refused += 1
      }
    }
    return counts
  }

  @Test(arguments: [0, 4, 12, 15, 17, 32])
  func `a tag of another length is refused`(_ byteCount: Int) throws {
    let key = SecretBytes.random(byteCount: 32)
    let nonce = [UInt8](repeating: 7, count: 12)
    let empty: [UInt8] = []
    var box = try AES256GCM.seal(
      [1, 2, 3].span.bytes, key: key, nonce: nonce, authenticating: empty.span.bytes)
    box.tag = Array((box.tag + box.tag).prefix(byteCount))
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256-GCM nonce or tag")) {
      _ = try AES256GCM.open(box, key: key, nonce: nonce, authenticating: empty.span.bytes)
    }
  }

  @Test func `changed ciphertext or associated data is refused`() throws {
    let key = SecretBytes.random(byteCount: 32)
    let nonce = RandomSource.system.bytes(count: 12)
    let aad: [UInt8] = [9, 9]
    let text = [UInt8](repeating: 5, count: 100)
    let box = try AES256GCM.seal(
      text.span.bytes, key: key, nonce: nonce, authenticating: aad.span.bytes)
    for byte in box.ciphertext.indices {
      var changed = box
      changed.ciphertext[byte] ^= 0x10
      #expect(throws: CryptoError.self) {
        _ = try AES256GCM.open(changed, key: key, nonce: nonce, authenticating: aad.span.bytes)
      }
    }
    #expect(throws: CryptoError.self) {
      _ = try AES256GCM.open(box, key: key, nonce: nonce, authenticating: [UInt8]([9]).span.bytes)
    }
    let opened = try AES256GCM.open(box, key: key, nonce: nonce, authenticating: aad.span.bytes)
    #expect(opened.array() == text)
  }
}
