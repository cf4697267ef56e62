public import VaultCrypto

/// What opens a vault: one of these is enough.
public enum VaultSecret: ~Copyable, Sendable {
  /// A password, with the caller's salt if one was given when it was set.
  case password(Credentials)
  /// A code on paper.
  case recoveryCode(RecoveryCode)
  /// The contents of a key file: exactly 32 bytes.
  case keyFile(SecretBytes)

  /// The kind of slot that it opens.
  public var kind: VaultStatus.Slot.Kind {
    switch self {
    case .password: .password
    case .recoveryCode: .recoveryCode
    case .keyFile: .keyFile
    }
  }

  /// Whether these are the standard credentials, which everybody knows.
  borrowing func isStandard() -> Bool {
    switch self {
    case .password(let credentials): credentials.areStandard()
    default: false
    }
  }

  /// - Throws: `keyFileLength` for a key file that has not exactly 32 bytes.
  borrowing func requireWhole() throws(VaultError) {
    switch self {
    case .keyFile(let key): try KeySlot.requireKeyFile(key)
    default: return
    }
  }

  /// A second one of the same contents.
  public borrowing func copy() -> VaultSecret {
    switch self {
    case .password(let credentials): .password(credentials.copy())
    case .recoveryCode(let code): .recoveryCode(code.copy())
    case .keyFile(let key): .keyFile(key.copy())
    }
  }
}

extension Credentials {
  borrowing func copy() -> Credentials {
    Credentials(password: password.copy(), salt: salt.copy())
  }
}
