import TestSupport
import Testing
import VaultCrypto

@Suite struct X25519Tests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let `private`, `public`, shared: Hex
    let result: Outcome
  }

  /// Refused are the public keys with which each private key gives zero; the publisher accepts both answers.
  @Test func `shared secrets match the compact table, and zero is refused`() throws {
    var counts = VectorCounts()
    for vector in try VectorFile<Case>(compact: "x25519").vectors {
      let key = SecretBytes(copying: vector.private.bytes)
      if vector.shared.bytes.allSatisfy({ $0 == 0 }) {
        #expect(
          throws: CryptoError(.invalidArgument, in: "X25519 public key"), "\(vector.name)"
        ) { _ = try X25519.sharedSecret(key, with: vector.public.bytes) }
        counts.refused += 1
      } else {
        let secret = try X25519.sharedSecret(key, with: vector.public.bytes)
        #expect(secret.array() == vector.shared.bytes, "\(vector.name)")
        counts.matched += 1
      }
    }
    #expect(counts == VectorCounts(matched: 38, refused: 22))
  }

  /// RFC 7748, section 5.2: the result of 1,000 iterations, each with the results of the two before.
  @Test func `a thousand iterations match RFC 7748`() throws {
    var key = [9] + [UInt8](repeating: 0, count: 31)
    var point = key
    for _ in 0..<1000 {
      let result = try X25519.sharedSecret(SecretBytes(copying: key), with: point)
      point = key
      key = result.array()
    }
    #expect(key.hex == "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51")
  }

  @Test func `two parties share a secret`() throws {
    let alice = X25519.privateKey()
    let bob = X25519.privateKey()
    let atAlice = try X25519.sharedSecret(alice, with: X25519.publicKey(of: bob))
    let atBob = try X25519.sharedSecret(bob, with: X25519.publicKey(of: alice))
    #expect(atAlice.array() == atBob.array())
  }

  /// RFC 7748, section 6.1.
  @Test func `a public key is the one of RFC 7748`() throws {
    let bob = SecretBytes(
      copying: try #require(
        try VectorFile<Case>(compact: "x25519").vectors.first { $0.name == "RFC 7748 6.1, Bob" }
      ).private.bytes)
    let publicKey = try X25519.publicKey(of: bob)
    #expect(publicKey.hex == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
  }

  @Test(arguments: [0, 31, 33])
  func `a key of another length is refused`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "X25519 private key")) {
      _ = try X25519.publicKey(of: SecretBytes.random(byteCount: byteCount))
    }
    #expect(throws: CryptoError(.invalidArgument, in: "X25519 public key")) {
      _ = try X25519.sharedSecret(
        X25519.privateKey(), with: [UInt8](repeating: 9, count: byteCount))
    }
  }
}
