internal import FileLayer

extension VaultPolicy {
  /// What a password is about to be used for, which decides what its owner can do next.
  enum PasswordUse {
    case setting
    case unlocking
  }

  /// - Throws: for the first rule that a password breaks, that rule's own error.
  func check(
    _ credentials: borrowing Credentials, for use: PasswordUse, of id: VaultID
  ) throws(VaultError) {
    if credentials.areStandard() {
      guard allowsStandardPassword else {
        throw broken(
          .passwordRequired, use,
          "vault '\(id)' demands a password: the publicly known one is not allowed")
      }
      return
    }
    let password = PasswordTally(credentials.password)
    func demand(
      _ code: VaultError.Code, unless isKept: Bool, _ what: String
    ) throws(VaultError) {
      if !isKept { throw broken(code, use, "the policy of vault '\(id)' demands \(what)") }
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
      unless: PasswordTally.hasDifferentCharacters(
        minimumUniqueCharacters, in: credentials.password),
      "a password of at least \(minimumUniqueCharacters) different characters")
  }

  /// - Throws: `passwordExpired` for a password that was set too long ago.
  func checkAge(
    passwordSetAt: Int, now: UnixTime, of id: VaultID
  ) throws(VaultError) {
    guard expirationDays > 0, now.wholeSeconds - passwordSetAt >= expirationDays * 86_400 else {
      return
    }
    throw broken(
      .passwordExpired, .unlocking,
      "the password of vault '\(id)' is older than the \(expirationDays) days that its policy allows"
    )
  }

  private func broken(
    _ code: VaultError.Code, _ use: PasswordUse, _ message: String
  ) -> VaultError {
    let hint =
      switch use {
      case .setting: "choose another password; nothing was changed"
      case .unlocking:
        "change the password, which takes this one as the current one: datavault change-password"
      }
    return VaultError(code, message, hint: hint)
  }
}
