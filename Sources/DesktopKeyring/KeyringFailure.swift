internal import DataVault

/// The error of a failed call to the keyring.
struct KeyringFailure: Error {
  enum Kind {
    /// There is no bus or no service, or it does not answer.
    case unreachable
    /// The keyring is locked, and the user did not unlock it.
    case locked
    /// The item is not one that this software has stored.
    case unusable
  }

  let kind: Kind
  /// What happened, partly in the words of the bus or of the service.
  let words: String

  init(_ kind: Kind, _ words: String) {
    self.kind = kind
    let scalars = words.unicodeScalars.prefix(500).map { scalar in
      scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar
    }
    self.words = String(String.UnicodeScalarView(scalars))
  }

  static var locked: KeyringFailure { KeyringFailure(.locked, "the user did not unlock it") }

  /// The failure of a call for the key of a vault.
  func vaultError(of id: VaultID) -> VaultError {
    switch kind {
    case .unreachable:
      VaultError(
        .keyringUnavailable, "the desktop's keyring is not available: \(words)",
        hint:
          "run the command in a desktop session with a keyring, or open the vault with its password",
        underlying: self)
    case .locked:
      VaultError(
        .keyringLocked, "the desktop's keyring is locked: \(words)",
        hint:
          "unlock it, for example by logging in at the desktop, or open the vault with its password",
        underlying: self)
    case .unusable:
      VaultError(
        .secretUnavailable, words,
        hint:
          "open the vault with its password and store a new key: datavault unlock \(id) --remember",
        underlying: self)
    }
  }
}

/// The time to wait for the keyring.
package struct KeyringTimeouts: Sendable {
  /// The time for the service to answer.
  let answer: Duration
  /// The time for the user to answer a question of the service.
  let person: Duration

  package init(answer: Duration, person: Duration) {
    self.answer = answer
    self.person = person
  }

  /// 25 seconds for the service, which is the default of D-Bus, and two minutes for the user.
  package static let standard = KeyringTimeouts(answer: .seconds(25), person: .seconds(120))
}
