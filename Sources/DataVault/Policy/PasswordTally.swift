internal import VaultCrypto

/// What the rules for passwords ask about one: counts, never its characters.
struct PasswordTally {
  private(set) var length = 0
  private(set) var hasDigit = false
  private(set) var hasUpper = false
  private(set) var hasLower = false
  private(set) var hasSpecial = false

  init(_ password: borrowing SecretBytes) {
    var tally = Self()
    password.withBytes { PasswordCharacters.forEach(in: $0) { tally.count($0) } }
    self = tally
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

  /// Whether a password has at least so many different characters.
  ///
  /// Those found so far are noted in a secret, for as long as they are fewer.
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
