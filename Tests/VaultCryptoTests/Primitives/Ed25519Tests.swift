import TestSupport
import Testing
import VaultCrypto

@Suite struct Ed25519Tests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let seed: Hex?
    let pk, msg, sig: Hex
    let result: Outcome
  }

  @Test func `signatures match the compact table`() throws {
    var counts = VectorCounts()
    var signed = 0
    for vector in try VectorFile<Case>(compact: "ed25519").vectors {
      if let seed = vector.seed.map({ SecretBytes(copying: $0.bytes) }) {
        #expect(try Ed25519.publicKey(ofSeed: seed) == vector.pk.bytes, "\(vector.name)")
        let signature = try Ed25519.sign(vector.msg.bytes, seed: seed)
        #expect(signature == vector.sig.bytes, "\(vector.name)")
        signed += 1
      }
      if vector.result == .valid {
        try Ed25519.verify(vector.sig.bytes, of: vector.msg.bytes, publicKey: vector.pk.bytes)
        counts.matched += 1
      } else {
        #expect(throws: CryptoError.self, "\(vector.name)") {
          try Ed25519.verify(vector.sig.bytes, of: vector.msg.bytes, publicKey: vector.pk.bytes)
        }
        counts.refused += 1
      }
    }
    #expect(signed == 3)
    #expect(counts == VectorCounts(matched: 12, refused: 19))
  }

  @Test func `a signature holds for its message and key alone`() throws {
    let seed = SecretBytes.random(byteCount: Ed25519.seedByteCount)
    let publicKey = try Ed25519.publicKey(ofSeed: seed)
    let signature = try Ed25519.sign([1, 2, 3], seed: seed)
    try Ed25519.verify(signature, of: [1, 2, 3], publicKey: publicKey)
    #expect(throws: CryptoError(.authenticationFailed, in: "Ed25519 verify")) {
      try Ed25519.verify(signature, of: [1, 2], publicKey: publicKey)
    }
    let other = try Ed25519.publicKey(ofSeed: SecretBytes.random(byteCount: 32))
    #expect(throws: CryptoError(.authenticationFailed, in: "Ed25519 verify")) {
      try Ed25519.verify(signature, of: [1, 2, 3], publicKey: other)
    }
  }

  @Test(arguments: [0, 31, 33])
  func `a key of another length is refused`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "ED25519 private key")) {
      _ = try Ed25519.sign([], seed: SecretBytes.random(byteCount: byteCount))
    }
    #expect(throws: CryptoError(.invalidArgument, in: "ED25519 public key")) {
      try Ed25519.verify(
        [UInt8](repeating: 0, count: 64), of: [],
        publicKey: [UInt8](repeating: 0, count: byteCount))
    }
  }
}
