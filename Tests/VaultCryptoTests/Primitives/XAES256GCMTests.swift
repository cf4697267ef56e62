import Testing

@testable import VaultCrypto

/// Tests against C2SP XAES-256-GCM.md.
@Suite struct XAES256GCMTests {
  @Test func `results match the specification's vectors`() throws {
    let cases = try VectorFile<AES256GCMTests.Case>(compact: "xaes-256-gcm").vectors
    #expect(cases.count == 2)
    for vector in cases {
      let cipher = try XAES256GCM(key: SecretBytes(copying: vector.key.bytes))
      let sealed = try cipher.sealed(
        vector.msg.bytes, nonce: vector.iv.bytes, aad: vector.aad.bytes)
      #expect(sealed == vector.ct.bytes + vector.tag.bytes, "\(vector.name)")
      var message = vector.msg.bytes
      let tag = try cipher.seal(
        &message, nonce: vector.iv.bytes, authenticating: vector.aad.bytes)
      #expect(message + tag == sealed, "\(vector.name)")
      try cipher.open(
        &message, nonce: vector.iv.bytes, authenticating: vector.aad.bytes, tag: tag)
      #expect(message == vector.msg.bytes, "\(vector.name)")
      #expect(
        try cipher.opened(sealed, nonce: vector.iv.bytes, aad: vector.aad.bytes)
          == vector.msg.bytes)
      #expect(throws: CryptoError(.authenticationFailed, in: "XAES-256-GCM open")) {
        try cipher.opened(sealed, nonce: vector.iv.bytes, aad: Array("other".utf8))
      }
    }
  }

  /// The specification's accumulated test: 10,000 random messages in one digest.
  @Test func `results match the specification's accumulated test`() throws {
    var stream = SHAKE128()
    var sum = SHAKE128()
    for _ in 0..<10_000 {
      let key = stream.squeeze(32)
      let nonce = stream.squeeze(24)
      let plaintext = stream.squeeze(Int(stream.squeeze(1)[0]))
      let aad = stream.squeeze(Int(stream.squeeze(1)[0]))
      let cipher = try XAES256GCM(key: SecretBytes(copying: key))
      let sealed = try cipher.sealed(plaintext, nonce: nonce, aad: aad)
      let opened = try cipher.opened(sealed, nonce: nonce, aad: aad)
      #expect(opened == plaintext)
      sum.absorb(sealed)
    }
    #expect(
      sum.squeeze(32).hex == "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939")
  }

  /// More prefixes than the cache has slots, in an order that evicts prefixes and uses them again.
  @Test func `messages open in any order of prefixes`() throws {
    let key = SecretBytes.random(byteCount: 32)
    let writer = try XAES256GCM(key: key)
    let nonces = (0..<40).map { number in
      [UInt8](repeating: UInt8(number % 20), count: 12)
        + [UInt8](repeating: UInt8(number), count: 12)
    }
    let sealed = try nonces.map { try writer.sealed(Array("text".utf8), nonce: $0, aad: []) }
    let reader = try XAES256GCM(key: key)
    for index in [0, 39, 1, 38, 0, 0, 20] + Array(0..<40) + Array((0..<40).reversed()) {
      #expect(try reader.opened(sealed[index], nonce: nonces[index], aad: []) == Array("text".utf8))
      #expect(throws: CryptoError.self) {
        try reader.opened(sealed[index], nonce: nonces[(index + 1) % 40], aad: [])
      }
    }
  }

  /// A prefix of zeros is a valid prefix and does not match an empty slot of the cache.
  @Test func `a nonce of zeros works`() throws {
    let key = SecretBytes.random(byteCount: 32)
    let nonce = [UInt8](repeating: 0, count: 24)
    let sealed = try XAES256GCM(key: key).sealed([1, 2, 3], nonce: nonce, aad: [])
    #expect(try XAES256GCM(key: key).opened(sealed, nonce: nonce, aad: []) == [1, 2, 3])
    let other = try XAES256GCM(key: SecretBytes.random(byteCount: 32))
    #expect(throws: CryptoError.self) { try other.opened(sealed, nonce: nonce, aad: []) }
  }

  @Test func `sealing works after a failed open`() throws {
    let cipher = try XAES256GCM(key: SecretBytes.random(byteCount: 32))
    let nonce = RandomSource.system.bytes(count: 24)
    let first = try cipher.sealed([1, 2, 3], nonce: nonce, aad: [4])
    #expect(throws: CryptoError.self) { try cipher.opened(first, nonce: nonce, aad: [5]) }
    #expect(try cipher.sealed([1, 2, 3], nonce: nonce, aad: [4]) == first)
    #expect(try cipher.opened(first, nonce: nonce, aad: [4]) == [1, 2, 3])
  }

  @Test func `a failed open wipes the output`() throws {
    let cipher = try XAES256GCM(key: SecretBytes.random(byteCount: 32))
    let nonce = RandomSource.system.bytes(count: 24)
    let sealed = try cipher.sealed([UInt8](repeating: 7, count: 4056), nonce: nonce, aad: [])
    var output = [UInt8](repeating: 0xEE, count: 4056)
    #expect(throws: CryptoError(.authenticationFailed, in: "XAES-256-GCM open")) {
      try output.withUnsafeMutableBytes { output in
        try sealed.withUnsafeBytes { sealed in
          try nonce.withUnsafeBytes { nonce in
            try cipher.open(
              UnsafeRawBufferPointer(rebasing: sealed[..<4056]), into: output.baseAddress,
              nonce: nonce, authenticating: UnsafeRawBufferPointer(start: nil, count: 0),
              tag: UnsafeRawBufferPointer(rebasing: sealed[16..<32]))
          }
        }
      }
    }
    #expect(output == [UInt8](repeating: 0, count: 4056))
  }

  @Test(arguments: [0, 4, 12, 15, 17])
  func `a tag of another length is refused`(_ byteCount: Int) throws {
    let cipher = try XAES256GCM(key: SecretBytes.random(byteCount: 32))
    let nonce = RandomSource.system.bytes(count: 24)
    let sealed = try cipher.sealed([], nonce: nonce, aad: [])
    let tag = Array((sealed + sealed).prefix(byteCount))
    var nothing: [UInt8] = []
    #expect(throws: CryptoError(.invalidArgument, in: "XAES-256-GCM nonce or tag")) {
      try nothing.withUnsafeMutableBytes { message in
        try tag.withUnsafeBytes { tag in
          try nonce.withUnsafeBytes { nonce in
            try cipher.open(
              UnsafeRawBufferPointer(message), into: message.baseAddress, nonce: nonce,
              authenticating: UnsafeRawBufferPointer(start: nil, count: 0), tag: tag)
          }
        }
      }
    }
  }

  @Test(arguments: [0, 12, 23, 25])
  func `a nonce of another length is refused`(_ byteCount: Int) throws {
    let cipher = try XAES256GCM(key: SecretBytes.random(byteCount: 32))
    let nonce = [UInt8](repeating: 1, count: byteCount)
    #expect(throws: CryptoError(.invalidArgument, in: "XAES-256-GCM nonce or tag")) {
      try cipher.sealed([1], nonce: nonce, aad: [])
    }
    #expect(throws: CryptoError(.invalidArgument, in: "XAES-256-GCM nonce or tag")) {
      try cipher.opened([UInt8](repeating: 1, count: 17), nonce: nonce, aad: [])
    }
  }

  @Test(arguments: [0, 16, 31, 33])
  func `a key of another length is refused`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "XAES-256-GCM key")) {
      _ = try XAES256GCM(key: SecretBytes.random(byteCount: byteCount))
    }
  }
}
