import TestSupport
import Testing
import VaultCrypto

@testable import Replication

@Suite struct NodeKeysTests {
  /// Seeds and public keys of the README of nats-io/nkeys, and of NATS's documentation on nkeys.
  private static let pairs = [
    (
      "SUAKYRHVIOREXV7EUZTBHUHL7NUMHPMAS7QMDU3GTIUWEI5LDNOXD43IZY",
      "UD466L6EBCM3YY5HEGHJANNTN4LSKTSUXTH7RILHCKEQMQHTBNLHJJXT"
    ),
    (
      "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
      "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    ),
  ]

  @Test(arguments: pairs)
  func `a public key has the form of NATS`(_ seed: String, _ publicKey: String) throws {
    // Two bytes of prefix, the seed, and the checksum.
    let seed = try #require(Base32.decode(seed))[2..<34]
    let key = try NATSUserKey(seed: SecretBytes(copying: Array(seed)))
    #expect(key.publicKey.text == publicKey)
    #expect(NATSPublicKey(publicKey) == key.publicKey)
  }

  @Test func `a changed public key is refused`() throws {
    let text = Self.pairs[0].1
    for index in text.indices {
      for character in "AU27" where character != text[index] {
        var changed = text
        changed.replaceSubrange(index...index, with: String(character))
        #expect(NATSPublicKey(changed) == nil, "\(changed)")
      }
    }
    #expect(NATSPublicKey(text.lowercased()) == nil)
    #expect(NATSPublicKey(text + "A") == nil)
    #expect(NATSPublicKey(String(text.dropLast())) == nil)
    #expect(NATSPublicKey("") == nil)
    // The same key as that of an account, with the right checksum.
    #expect(NATSPublicKey("AD466L6EBCM3YY5HEGHJANNTN4LSKTSUXTH7RILHCKEQMQHTBNLHINEM") == nil)
  }

  @Test func `a node signs a nonce under its public key`() throws {
    let key = try NodeKeys(from: .system).userKey()
    let nonce = Array("PXoWU7zWAMt75FY".utf8)
    let signature = try key.sign(nonce)
    try Ed25519.verify(signature, of: nonce, publicKey: key.publicKey.bytes)
  }

  @Test func `a node's keys are read as they were written`() throws {
    let keys = NodeKeys(from: .system)
    let bytes = keys.encodedBytes()
    #expect(bytes.byteCount == 65)
    let read = try NodeKeys(decoding: bytes)
    #expect(try read.invitationPublicKey() == keys.invitationPublicKey())
    let (own, again) = (try keys.userKey().publicKey, try read.userKey().publicKey)
    #expect(own == again)
    #expect(own.bytes != (try keys.invitationPublicKey()))
  }

  @Test func `keys of another length or version are refused`() throws {
    var bytes = NodeKeys(from: .system).encodedBytes().array()
    for count in bytes.indices {
      #expect(throws: NodeKeysError.self) {
        _ = try NodeKeys(decoding: SecretBytes(copying: Array(bytes[..<count])))
      }
    }
    #expect(throws: NodeKeysError.self) {
      _ = try NodeKeys(decoding: SecretBytes(copying: bytes + [0]))
    }
    bytes[0] = 2
    #expect(throws: NodeKeysError.self) {
      _ = try NodeKeys(decoding: SecretBytes(copying: bytes))
    }
  }

  /// RFC 4648, section 10, without padding.
  @Test(arguments: [
    ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"),
    ("fooba", "MZXW6YTB"), ("foobar", "MZXW6YTBOI"),
  ])
  func `base32 is that of RFC 4648`(_ plain: String, _ text: String) {
    #expect(Base32.encode(Array(plain.utf8)) == text)
    #expect(Base32.decode(text) == Array(plain.utf8))
  }

  @Test(arguments: ["M", "MZ1", "mzxw6", "MZ", "MZXW6YTBO", "MY======", "MZXW60"])
  func `what is not canonical base32 is refused`(_ text: String) {
    #expect(Base32.decode(text) == nil)
  }
}
