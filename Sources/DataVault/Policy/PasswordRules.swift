internal import FileLayer
internal import VaultCrypto

extension VaultPolicy {
  /// The operation for which a password is checked; it decides the hint.
  enum PasswordUse {
    case setting
    case unlocking
  }

  /// - Throws: the error of the first rule that a password breaks.
  func check(
    _ credentials: borrowing Credentials, for use: PasswordUse, of id: VaultID
  ) throws(VaultError) {
    if credentials.areStandard() {
      guard allowsStandardPassword else {
        throw broken(
          .passwordRequired, use, id,
          "vault '\(id)' requires a password: its policy forbids the publicly known one")
      }
      return
    }
    let password = PasswordProperties(credentials.password)
    func demand(
      _ code: VaultError.Code, unless isKept: Bool, _ what: String
    ) throws(VaultError) {
      if !isKept { throw broken(code, use, id, "the policy of vault '\(id)' requires \(what)") }
    }
    try demand(
      .passwordTooShort, unless: password.length >= minimumLength,
      "a password of at least \(minimumLength) characters")
    try demand(
      .needsDigit, unless: password.hasDigit || !requiresDigit, "a digit in the password")
    try demand(
      .needsUpper, unless: password.hasUpper || !requiresUpper,
      "an upper-case letter in the password")
    try demand(
      .needsLower, unless: password.hasLower || !requiresLower,
      "a lower-case letter in the password")
    try demand(
      .needsSpecial, unless: password.hasSpecial || !requiresSpecial,
      "a character in the password that is neither a letter nor a digit")
    try demand(
      .tooFewUniqueCharacters,
      unless: PasswordProperties.hasDifferentCharacters(
        minimumUniqueCharacters, in: credentials.password),
      "a password of at least \(minimumUniqueCharacters) different characters")
  }

  /// - Throws: `passwordExpired` for a password that is older than the policy allows.
  func checkAge(
    passwordSetAt: Int, now: UnixTime, of id: VaultID
  ) throws(VaultError) {
    guard expirationDays > 0, now.wholeSeconds - passwordSetAt >= expirationDays * 86_400 else {
      return
    }
    throw broken(
      .passwordExpired, .unlocking, id,
      "the password of vault '\(id)' is older than the \(expirationDays) days that its policy allows"
    )
  }

  private func broken(
    _ code: VaultError.Code, _ use: PasswordUse, _ id: VaultID, _ message: String
  ) -> VaultError {
    let hint =
      switch use {
      case .setting: "choose another password; nothing has changed"
      case .unlocking where code == .passwordRequired && id == .messaging:
        "run `datavault secure`, which also gives the queue new keys"
      case .unlocking:
        "run `datavault change-password`, which accepts this password as the current one"
      }
    return VaultError(code, message, hint: hint)
  }
}

/// Iterates over a password's characters without copying it: Unicode scalars, or bytes if the
/// password is not UTF-8.
enum PasswordCharacters {
  static func forEach(in bytes: RawSpan, _ body: (Unicode.Scalar) -> Void) {
    do {
      let text = try UTF8Span(validating: Span(_bytes: bytes))
      var characters = text.makeUnicodeScalarIterator()
      while let character = characters.next() { body(character) }
    } catch {
      for offset in 0..<bytes.byteCount { body(standIn(for: bytes.byte(offset))) }
    }
  }

  /// The scalar that stands for a byte: ASCII for itself, any other byte for a private-use scalar,
  /// which is neither a letter nor a digit.
  private static func standIn(for byte: UInt8) -> Unicode.Scalar {
    byte < 0x80 ? Unicode.Scalar(byte) : Unicode.Scalar(0xE000 + UInt16(byte)) ?? "\u{FFFD}"
  }
}

/// The properties of a password that the rules need: counts and flags, never its characters.
struct PasswordProperties {
  private(set) var length = 0
  private(set) var hasDigit = false
  private(set) var hasUpper = false
  private(set) var hasLower = false
  private(set) var hasSpecial = false

  init(_ password: borrowing SecretBytes) {
    var properties = Self()
    password.withBytes { PasswordCharacters.forEach(in: $0) { properties.count($0) } }
    self = properties
  }

  private init() {}

  private mutating func count(_ character: Unicode.Scalar) {
    length += 1
    let properties = character.properties
    hasUpper = hasUpper || properties.isUppercase
    hasLower = hasLower || properties.isLowercase
    switch properties.generalCategory {
    case .decimalNumber: hasDigit = true
    case .nonspacingMark, .spacingMark, .enclosingMark: break
    default: hasSpecial = hasSpecial || !properties.isAlphabetic
    }
  }

  /// Whether a password has at least this many different characters.
  ///
  /// The characters found so far are stored in a secret.
  static func hasDifferentCharacters(_ minimum: Int, in password: borrowing SecretBytes) -> Bool {
    guard minimum > 0 else { return true }
    var found = SecretBytes(zeroCount: minimum * MemoryLayout<Unicode.Scalar>.stride)
    return unsafe found.withUnsafeMutableBytes { bytes in
      let found = unsafe bytes.bindMemory(to: UInt32.self)
      var count = 0
      password.withBytes { password in
        PasswordCharacters.forEach(in: password) { character in
          guard count < minimum, unsafe !found[..<count].contains(character.value) else { return }
          unsafe found[count] = character.value
          count += 1
        }
      }
      return count == minimum
    }
  }
}
