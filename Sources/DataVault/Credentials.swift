public import VaultCrypto

/// What opens a vault's password slot: a password and, optionally, a salt of the caller's.
///
/// Both are raw bytes, used as they come: no encoding, no normalisation. The salt is stored
/// nowhere and is needed again each time; it comes in addition to the 16 random bytes that every
/// vault has. Without one, any JOSE tool opens the vault's file.
public struct Credentials: ~Copyable, Sendable {
  let password: SecretBytes
  let salt: SecretBytes

  /// Takes over a password and a salt.
  ///
  /// - Parameter salt: none by default; an empty one is the same as none.
  public init(password: consuming SecretBytes, salt: consuming SecretBytes? = nil) {
    self.password = password
    if let salt = consume salt {
      self.salt = salt
    } else {
      self.salt = SecretBytes(copying: [])
    }
  }

  /// The publicly known password and salt: "no security".
  ///
  /// They are in `docs/vault-format.md`. A vault under them is open to anyone who can read it.
  public static var standard: Credentials {
    Credentials(
      password: SecretBytes(copying: Array("datavault-standard-password".utf8)),
      salt: SecretBytes(copying: Array("datavault-standard-salt".utf8)))
  }

  /// Whether these are the standard credentials.
  borrowing func areStandard() -> Bool {
    let standard = Credentials.standard
    let isPasswordEqual = SecretBytes.isEqual(password, standard.password)
    let isSaltEqual = SecretBytes.isEqual(salt, standard.salt)
    return isPasswordEqual && isSaltEqual
  }
}
