public import VaultCrypto

extension RecoveryCode {
  /// Reads a code that somebody has typed.
  ///
  /// Hyphens and spaces are dropped; letters are taken in either case, `I` and `L` as 1, `O` as 0.
  ///
  /// - Throws: `recoveryCodeCharacter`, `recoveryCodeLength`, or `recoveryCodeMistyped` when the
  ///   check characters do not fit. No message holds any of the text.
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
        .recoveryCodeMistyped, "the recovery code is mistyped: its check characters do not fit",
        hint: "compare each group with the paper")
    }
    self = code
  }

  /// Writes 5 bits a character to `target`, which holds zeros.
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
      .recoveryCodeCharacter, "character \(number) of the recovery code is none that codes have",
      hint: "they have digits and letters without U, in groups of 4")
  }

  fileprivate static func recoveryCodeLength(_ count: Int) -> VaultError {
    VaultError(
      .recoveryCodeLength,
      "the recovery code has \(count) characters, not \(RecoveryCode.characterCount)",
      hint: "9 groups of 4; hyphens and spaces do not count")
  }
}
