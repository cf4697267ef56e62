@testable import VaultCrypto

extension XAES256GCM {
  /// Ciphertext and tag of one message.
  func sealed(_ plaintext: [UInt8], nonce: [UInt8], aad: [UInt8]) throws -> [UInt8] {
    var message = plaintext
    var tag = [UInt8](repeating: 0, count: Self.tagByteCount)
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

  /// The plaintext of what ``sealed(_:nonce:aad:)`` gave.
  func opened(_ sealed: [UInt8], nonce: [UInt8], aad: [UInt8]) throws -> [UInt8] {
    var message = Array(sealed.dropLast(Self.tagByteCount))
    let tag = Array(sealed.suffix(Self.tagByteCount))
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
