public import SealedVFS
public import SystemPackage
public import VaultCrypto

/// A database file, by where it lies, how it is encrypted and what opens it.
public struct DatabaseFile: ~Copyable, Sendable {
  /// How the pages are encrypted, and what opens them.
  enum Encryption: ~Copyable {
    case sealed(SecretBytes)
    case sqlcipher4(SQLCipherKey)
    case none
  }

  /// Where it lies.
  public let path: FilePath
  let encryption: Encryption

  private init(_ path: FilePath, _ encryption: consuming Encryption) {
    self.path = path
    self.encryption = encryption
  }

  /// Our own format, `docs/sealed-database-format.md`, under a key of 32 bytes.
  public static func sealed(_ path: FilePath, key: consuming SecretBytes) -> DatabaseFile {
    DatabaseFile(path, .sealed(key))
  }

  /// SQLCipher 4 with its default settings: `docs/sqlcipher-format.md`.
  public static func sqlcipher4(_ path: FilePath, key: consuming SQLCipherKey) -> DatabaseFile {
    DatabaseFile(path, .sqlcipher4(key))
  }

  /// A plain SQLite database.
  public static func plain(_ path: FilePath) -> DatabaseFile {
    DatabaseFile(path, .none)
  }
}
