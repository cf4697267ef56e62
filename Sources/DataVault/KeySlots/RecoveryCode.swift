public import VaultCrypto

/// A slot that opens with a recovery code.
struct RecoveryCodeSlot: NamedSlotKind {
  static let secretKind = VaultStatus.Slot.Kind.recoveryCode
  static let prefix = "recovery:"

  let identifier: String

  func wrappingKey(of secret: borrowing VaultSecret) throws(CryptoError) -> SecretBytes? {
    switch secret {
    case .recoveryCode(let code): try code.wrappingKey()
    default: nil
    }
  }

  static func wrongSecret(of id: VaultID) -> VaultError {
    VaultError(
      .wrongPassword, "the recovery code does not open vault '\(id)'",
      hint: "it is written correctly, but belongs to another vault or to a slot that was removed")
  }
}

/// A printed recovery code that opens a vault by itself: 160 random bits, created by
/// ``Vault/addRecoveryCode(named:)`` and shown once.
///
/// Its text has groups: `0410-6105-0R3G-G28A-1C60-T3GF-208H-44RM-W4QG`. The last four characters
/// are a check, which distinguishes a typing error from the code of another vault. The caller's
/// salt is not used.
public struct RecoveryCode: ~Copyable, Sendable {
  /// The number of random bytes in a code.
  static let byteCount = 20
  /// The number of characters without hyphens: 32 for the bytes, 4 for the check.
  static let characterCount = 36
  static let groupCharacterCount = 4
  /// The size of the random bytes and the check: the check is the first 20 bits of their SHA-256.
  static let contentByteCount = 23

  let content: SecretBytes

  /// Makes the code for these 20 bytes.
  package init(bytes: borrowing SecretBytes) throws(CryptoError) {
    let digest = try bytes.withBytes { (bytes) throws(CryptoError) in try SHA256.digest(bytes) }
    content = ByteWriter.secret { writer in
      writer.append(bytes)
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
          // Each character takes 5 of the 16 bits of two adjacent bytes, from `offset % 8` on.
          let offset = index * 5
          let pair =
            UInt16(content.byte(offset / 8)) << 8 | UInt16(content.byte(offset / 8 + 1))
          let bits = pair >> UInt16(11 - offset % 8) & 0x1F
          writer.append(CrockfordBase32.character(UInt8(bits)))
        }
      }
    }
  }

  /// The key that wraps the content key in this code's slot.
  borrowing func wrappingKey() throws(CryptoError) -> SecretBytes {
    try HKDF.sha512(
      inputKey: content.copy(0..<Self.byteCount), salt: [],
      info: Array("datavault/recovery".utf8), byteCount: 32)
  }

  /// A copy of the code.
  public borrowing func copy() -> RecoveryCode {
    RecoveryCode(content: content.copy())
  }

  private init(content: consuming SecretBytes) {
    self.content = content
  }
}

extension RecoveryCode {
  /// Parses a code that a person typed.
  ///
  /// Hyphens and spaces are ignored. Letters can have either case; `I` and `L` are read as 1, `O`
  /// as 0.
  ///
  /// - Throws: `recoveryCodeCharacter`, `recoveryCodeLength`, or `recoveryCodeMistyped` if the
  ///   check characters are wrong. No message contains any of the text.
  public init(parsing text: borrowing SecretBytes) throws(VaultError) {
    let content = try unsafe SecretBytes(byteCount: Self.contentByteCount) {
      (target) throws(VaultError) in
      try unsafe Self.decode(text, into: target)
    }
    let code = try withCrypto { () throws(CryptoError) in
      try RecoveryCode(bytes: content.copy(0..<Self.byteCount))
    }
    guard SecretBytes.isEqual(content, code.content) else {
      throw VaultError(
        .recoveryCodeMistyped, "the recovery code is mistyped: its check characters do not match",
        hint: "compare each group with the paper")
    }
    self = code
  }

  /// Writes 5 bits for each character to `target`, which must hold zeros.
  private static func decode(
    _ text: borrowing SecretBytes, into target: UnsafeMutableRawBufferPointer
  ) throws(VaultError) {
    var count = 0
    try text.withBytes { (text) throws(VaultError) in
      for offset in 0..<text.byteCount {
        let character = text.byte(offset)
        if character == UInt8(ascii: "-") || character == UInt8(ascii: " ") { continue }
        let bits = CrockfordBase32.bits(character)
        guard bits >= 0 else { throw .recoveryCodeCharacter(number: count + 1) }
        if count < characterCount {
          let position = count * 5
          let pair = UInt16(truncatingIfNeeded: bits) << UInt16(11 - position % 8)
          unsafe target[position / 8] |= UInt8(pair >> 8)
          unsafe target[position / 8 + 1] |= UInt8(pair & 0xFF)
        }
        count += 1
      }
    }
    guard count == characterCount else { throw .recoveryCodeLength(count) }
  }
}

extension VaultError {
  fileprivate static func recoveryCodeCharacter(number: Int) -> VaultError {
    VaultError(
      .recoveryCodeCharacter, "character \(number) of the recovery code is not valid",
      hint: "a code has digits and letters without U, in groups of 4")
  }

  fileprivate static func recoveryCodeLength(_ count: Int) -> VaultError {
    VaultError(
      .recoveryCodeLength,
      "the recovery code has \(count) characters, not \(RecoveryCode.characterCount)",
      hint: "enter 9 groups of 4; hyphens and spaces do not count")
  }
}

/// Crockford's base32, the alphabet of recovery codes.
///
/// The code has no tables and no branches on the data, because a secret passes through it.
enum CrockfordBase32 {
  /// The character for 5 bits: the digits, then the letters without I, L, O and U.
  static func character(_ bits: UInt8) -> UInt8 {
    let value = Int32(bits)
    // Each term adds the step to the next run of the alphabet if the value is beyond the current
    // run.
    var character = value + 48
    character += ((9 - value) >> 8) & 7
    character += ((17 - value) >> 8) & 1
    character += ((19 - value) >> 8) & 1
    character += ((21 - value) >> 8) & 1
    character += ((26 - value) >> 8) & 1
    return UInt8(truncatingIfNeeded: character)
  }

  /// The 5 bits of a character; negative for a character outside the alphabet.
  ///
  /// Letters can have either case; I and L are read as 1, O as 0.
  static func bits(_ character: UInt8) -> Int32 {
    var c = Int32(character)
    func mask(_ low: Int32, _ high: Int32) -> Int32 { ((low - 1 - c) & (c - high - 1)) >> 8 }
    c -= mask(97, 122) & 32
    var bits: Int32 = -1
    bits += mask(48, 57) & (c - 47)  // 0 to 9
    bits += mask(65, 72) & (c - 54)  // A to H
    bits += mask(73, 73) & 2  // I
    bits += mask(74, 75) & (c - 55)  // J, K
    bits += mask(76, 76) & 2  // L
    bits += mask(77, 78) & (c - 56)  // M, N
    bits += mask(79, 79) & 1  // O
    bits += mask(80, 84) & (c - 57)  // P to T
    bits += mask(86, 90) & (c - 58)  // V to Z
    return bits
  }
}
