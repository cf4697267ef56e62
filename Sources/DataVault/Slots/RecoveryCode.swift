public import VaultCrypto

/// A code on paper that opens a vault alone: 160 random bits, made by
/// ``Vault/addRecoveryCode(named:)`` and shown once.
///
/// In groups: `0410-6105-0R3G-G28A-1C60-T3GF-208H-44RM-W4QG`. The last four characters are a check,
/// so that a slip of the pen is told from a code that does not belong. The caller's salt plays no
/// part.
public struct RecoveryCode: ~Copyable, Sendable {
  /// The random bytes in a code.
  static let byteCount = 20
  /// Characters without the hyphens: 32 for the bytes, 4 to check them.
  static let characterCount = 36
  static let groupCharacterCount = 4
  /// The bytes and, of their SHA-256, the 20 bits that are the check characters.
  static let contentByteCount = 23

  let content: SecretBytes

  /// The code of these 20 bytes.
  package init(bytes: borrowing SecretBytes) throws(CryptoError) {
    let digest = try bytes.withBytes { (bytes) throws(CryptoError) in try SHA256.digest(bytes) }
    content = ByteWriter.secret { writer in
      bytes.withBytes { writer.append($0, 0..<$0.byteCount) }
      writer.append(digest[0])
      writer.append(digest[1])
      writer.append(digest[2] & 0xF0)
    }
  }

  /// Draws a new code.
  static func random(from source: RandomSource) throws(VaultError) -> RecoveryCode {
    try withCrypto { () throws(CryptoError) in
      try RecoveryCode(bytes: .random(byteCount: byteCount, from: source))
    }
  }

  /// The code in 9 groups of 4 characters with hyphens between them: 44 bytes of ASCII.
  public borrowing func text() -> SecretBytes {
    ByteWriter.secret { writer in
      content.withBytes { content in
        for index in 0..<Self.characterCount {
          if index > 0, index % Self.groupCharacterCount == 0 {
            writer.append(UInt8(ascii: "-"))
          }
          // 5 bits, which two neighbouring bytes hold.
          let offset = index * 5
          let pair =
            UInt16(content.byte(offset / 8)) << 8 | UInt16(content.byte(offset / 8 + 1))
          let bits = pair >> UInt16(11 - offset % 8) & 0x1F
          writer.append(CrockfordBase32.character(UInt8(bits)))
        }
      }
    }
  }

  /// The key that wraps in the slot of this code.
  borrowing func wrappingKey() throws(CryptoError) -> SecretBytes {
    try HKDF.sha512(
      inputKey: content.copy(0..<Self.byteCount), salt: [],
      info: Array("datavault/recovery".utf8), byteCount: 32)
  }

  /// A second one of the same code.
  public borrowing func copy() -> RecoveryCode {
    RecoveryCode(content: content.copy())
  }

  private init(content: consuming SecretBytes) {
    self.content = content
  }
}
