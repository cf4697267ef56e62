public import VaultCrypto

/// The input for a vault's password slot: a password and, optionally, a caller's salt.
///
/// Both are raw bytes and are used unchanged, without encoding or normalisation. The salt is not
/// stored, and every unlock needs it. It is used in addition to the 16 random bytes that every
/// vault has. Without a caller's salt, any JOSE tool can open the vault's file.
public struct Credentials: ~Copyable, Sendable {
  let password: SecretBytes
  let salt: SecretBytes

  /// Takes ownership of a password and a salt.
  ///
  /// - Parameter salt: none by default; an empty salt equals none.
  public init(password: consuming SecretBytes, salt: consuming SecretBytes? = nil) {
    self.password = password
    self.salt = salt ?? SecretBytes(copying: [])
  }

  /// The published standard password and salt: "no security".
  ///
  /// They are listed in `docs/reference/vault-format.md`. Anyone who can read a vault under them can open it.
  public static var standard: Credentials {
    Credentials(
      password: SecretBytes(copying: Array("datavault-standard-password".utf8)),
      salt: SecretBytes(copying: Array("datavault-standard-salt".utf8)))
  }

  /// Whether these are the standard credentials, or equal them for PBKDF2.
  package borrowing func areStandard() -> Bool {
    let isPasswordEqual = haveStandardPassword()
    let isSaltEqual = SecretBytes.isEqual(salt, Credentials.standard.salt)
    return isPasswordEqual && isSaltEqual
  }

  /// Whether the password is the standard one, with any salt, or equals it for PBKDF2.
  ///
  /// HMAC pads a key with zero bytes to its block of 128 bytes. So zero bytes at the end of a password
  /// change nothing up to that length.
  package borrowing func haveStandardPassword() -> Bool {
    let standard = Credentials.standard
    let length = standard.password.byteCount
    let isPadded = password.withBytes { bytes in
      (length...128).contains(bytes.byteCount)
        && (length..<bytes.byteCount).allSatisfy { bytes.byte($0) == 0 }
    }
    return isPadded && SecretBytes.isEqual(password.copy(0..<length), standard.password)
  }
}

/// A secret that opens a vault by itself.
public enum VaultSecret: ~Copyable, Sendable {
  /// A password, with the caller's salt if one was given when it was set.
  case password(Credentials)
  /// A printed recovery code.
  case recoveryCode(RecoveryCode)
  /// The contents of a key file: exactly 32 bytes.
  case keyFile(SecretBytes)

  /// The kind of slot that this secret opens.
  public var kind: VaultStatus.Slot.Kind {
    switch self {
    case .password: .password
    case .recoveryCode: .recoveryCode
    case .keyFile: .keyFile
    }
  }

  /// Whether these are the standard credentials, which are public.
  borrowing func isStandard() -> Bool {
    switch self {
    case .password(let credentials): credentials.areStandard()
    default: false
    }
  }

  /// - Throws: `keyFileLength` for a key file whose length is not 32 bytes.
  borrowing func requireWhole() throws(VaultError) {
    switch self {
    case .keyFile(let key): try KeyFileSlot.requireKey(key)
    default: return
    }
  }

  /// A copy with the same contents.
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

/// A list of secrets, for operations that need more than one: ``Vault/rotate(keeping:dropping:)``.
public struct VaultSecrets: ~Copyable, Sendable {
  /// A copyable reference to a secret: arrays hold only copyable elements.
  private final class Box: Sendable {
    let secret: VaultSecret

    init(_ secret: consuming VaultSecret) {
      self.secret = secret
    }
  }

  private var boxes: [Box] = []

  /// Makes an empty list.
  public init() {}

  /// The number of secrets.
  public var count: Int { boxes.count }

  /// Takes ownership of one more secret.
  public mutating func append(_ secret: consuming VaultSecret) {
    boxes.append(Box(secret))
  }

  /// Lends the secret at an index from 0 to ``count`` - 1.
  public borrowing func withSecret<R: ~Copyable, E>(
    _ index: Int, _ body: (borrowing VaultSecret) throws(E) -> R
  ) throws(E) -> R {
    try body(boxes[index].secret)
  }

  /// A copy of the secret at an index from 0 to ``count`` - 1.
  public borrowing func copy(at index: Int) -> VaultSecret {
    boxes[index].secret.copy()
  }
}
