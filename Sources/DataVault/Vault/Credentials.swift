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
  /// They are in `docs/reference/vault-format.md`. A vault under them is open to anyone who can read it.
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

/// Several secrets, for what needs more than one: ``Vault/rotate(keeping:dropping:)``.
public struct VaultSecrets: ~Copyable, Sendable {
  /// An array holds only what can be copied: a reference to what cannot.
  private final class Box: Sendable {
    let secret: VaultSecret

    init(_ secret: consuming VaultSecret) {
      self.secret = secret
    }
  }

  private var boxes: [Box] = []

  /// None.
  public init() {}

  /// How many there are.
  public var count: Int { boxes.count }

  /// Takes over one more.
  public mutating func append(_ secret: consuming VaultSecret) {
    boxes.append(Box(secret))
  }

  /// Lends one of them, 0 to ``count`` - 1.
  public borrowing func withSecret<R: ~Copyable, E>(
    _ index: Int, _ body: (borrowing VaultSecret) throws(E) -> R
  ) throws(E) -> R {
    try body(boxes[index].secret)
  }

  /// A copy of one of them.
  public borrowing func copy(at index: Int) -> VaultSecret {
    boxes[index].secret.copy()
  }
}
