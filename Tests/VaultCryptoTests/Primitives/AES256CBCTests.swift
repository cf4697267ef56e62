import Testing

@testable import VaultCrypto

@Suite struct AES256CBCTests {
  struct Case: Vector {
    let tcId: Int?
    let id: String?
    let key, iv, msg, ct: Hex
  }

  @Test func `repeated encryption and decryption match the published vectors`() throws {
    var counts = VectorCounts()
    for vector in try VectorFile<Case>(compact: "aes-256-cbc").vectors {
      let cipher = try AES256CBC(key: SecretBytes(copying: vector.key.bytes))
      for _ in 0..<3 {
        #expect(try run(cipher.encrypt, vector.msg.bytes, vector.iv.bytes) == vector.ct.bytes)
        #expect(try run(cipher.decrypt, vector.ct.bytes, vector.iv.bytes) == vector.msg.bytes)
      }
      var message = vector.msg.bytes
      try cipher.encrypt(&message, iv: vector.iv.bytes)
      #expect(message == vector.ct.bytes)
      try cipher.decrypt(&message, iv: vector.iv.bytes)
      #expect(message == vector.msg.bytes)
      counts.matched += 1
    }
    #expect(counts == VectorCounts(matched: 2))
  }

  @Test(arguments: [1, 15, 17])
  func `an incomplete block is refused`(_ byteCount: Int) throws {
    let cipher = try AES256CBC(key: SecretBytes.random(byteCount: 32))
    let message = [UInt8](repeating: 1, count: byteCount)
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256-CBC")) {
      try run(cipher.encrypt, message, [UInt8](repeating: 0, count: 16))
    }
  }

  @Test func `an initialization vector of another length is refused`() throws {
    let cipher = try AES256CBC(key: SecretBytes.random(byteCount: 32))
    #expect(throws: CryptoError(.invalidArgument, in: "AES-256-CBC")) {
      try run(cipher.decrypt, [UInt8](repeating: 1, count: 16), [UInt8](repeating: 0, count: 12))
    }
  }

  @Test(arguments: [0, 16, 31, 33])
  func `a key of another length is refused`(_ byteCount: Int) {
    #expect(throws: CryptoError(.invalidArgument, in: "cipher key")) {
      _ = try AES256CBC(key: SecretBytes.random(byteCount: byteCount))
    }
  }

  private func run(
    _ transform: (UnsafeRawBufferPointer, UnsafeMutableRawPointer, UnsafeRawBufferPointer) throws ->
      Void,
    _ input: [UInt8], _ iv: [UInt8]
  ) throws -> [UInt8] {
    var output = [UInt8](repeating: 0, count: input.count)
    try output.withUnsafeMutableBytes { output in
      guard let start = output.baseAddress else { return }
      try input.withUnsafeBytes { input in
        try iv.withUnsafeBytes { try transform(input, start, $0) }
      }
    }
    return output
  }
}
