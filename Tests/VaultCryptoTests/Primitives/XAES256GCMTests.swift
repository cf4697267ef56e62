import Testing

@testable import VaultCrypto

/// C2SP XAES-256-GCM.md, "Test vectors".
@Suite struct XAES256GCMTests {
  struct Vector {
    let key: UInt8
    let aad: String
    let sealed: String
  }

  @Test(arguments: [
    Vector(
      key: 1, aad: "", sealed: "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
    Vector(
      key: 3, aad: "c2sp.org/XAES-256-GCM",
      sealed: "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
  ])
  func sealsAsTheSpecificationDoes(_ vector: Vector) throws {
    let cipher = try XAES256GCM(
      key: SecretBytes(copying: [UInt8](repeating: vector.key, count: 32)))
    let nonce = Array("ABCDEFGHIJKLMNOPQRSTUVWX".utf8)
    let sealed = try cipher.sealed(
      Array("XAES-256-GCM".utf8), nonce: nonce, aad: Array(vector.aad.utf8))
    #expect(sealed.hex == vector.sealed)
    #expect(
      try cipher.opened(sealed, nonce: nonce, aad: Array(vector.aad.utf8))
        == Array("XAES-256-GCM".utf8))
    #expect(throws: CryptoError(.authenticationFailed, in: "XAES-256-GCM open")) {
      try cipher.opened(sealed, nonce: nonce, aad: Array("other".utf8))
    }
  }
}

extension XAES256GCM {
  func sealed(_ plaintext: [UInt8], nonce: [UInt8], aad: [UInt8]) throws -> [UInt8] {
    var message = plaintext
    var tag = [UInt8](repeating: 0, count: 16)
    try message.withUnsafeMutableBytes { message in
      try tag.withUnsafeMutableBytes { tag in
        try nonce.withUnsafeBytes { nonce in
          try aad.withUnsafeBytes { aad in
            try seal(message, nonce: nonce, authenticating: aad, tag: tag)
          }
        }
      }
    }
    return message + tag
  }

  func opened(_ sealed: [UInt8], nonce: [UInt8], aad: [UInt8]) throws -> [UInt8] {
    var message = Array(sealed.dropLast(16))
    let tag = Array(sealed.suffix(16))
    try message.withUnsafeMutableBytes { message in
      try tag.withUnsafeBytes { tag in
        try nonce.withUnsafeBytes { nonce in
          try aad.withUnsafeBytes { aad in
            try open(message, nonce: nonce, authenticating: aad, tag: tag)
          }
        }
      }
    }
    return message
  }
}

extension [UInt8] {
  var hex: String {
    map { byte in
      let digits = Array<Character>("0123456789abcdef")
      return String([digits[Int(byte >> 4)], digits[Int(byte & 15)]])
    }.joined()
  }
}
