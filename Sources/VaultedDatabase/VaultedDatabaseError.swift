internal import DataVault
internal import FileLayer
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage

/// The error of using a database and its vault together.
public struct VaultedDatabaseError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; a new version can add members.
  public struct Code: Hashable, Sendable {
    let name: String

    /// The vault is locked: unlock it first.
    public static let vaultLocked = Code(name: "vaultLocked")
    /// The database exists, but no vault that could hold its key.
    public static let keyMissing = Code(name: "keyMissing")
    /// The vault belongs to a database that is missing.
    public static let databaseMissing = Code(name: "databaseMissing")
    /// The database belongs to another vault, or to none.
    public static let databaseMismatch = Code(name: "databaseMismatch")
    /// An unencrypted SQLite file has the path of the sealed database.
    public static let plainDatabase = Code(name: "plainDatabase")
    /// The database was written by a newer version.
    public static let newerVersion = Code(name: "newerVersion")
    /// The database is damaged.
    public static let damaged = Code(name: "damaged")
    /// The database is an older copy or has lost its last commits: it lacks its vault's anchor.
    public static let rolledBack = Code(name: "rolledBack")
    /// The vault already has other credentials than the standard ones.
    public static let alreadySecured = Code(name: "alreadySecured")
    /// Another connection or process holds the database or its lock.
    public static let busy = Code(name: "busy")
    /// The database of the vault to delete still exists.
    public static let databaseStillExists = Code(name: "databaseStillExists")
    /// The vault failed; ``VaultedDatabaseError/underlying`` is a `VaultError`.
    public static let vault = Code(name: "vault")
    /// The sealed database failed; ``VaultedDatabaseError/underlying`` is a `SealedDatabaseError`.
    public static let database = Code(name: "database")
    /// The profile already has another key.
    public static let keyExists = Code(name: "keyExists")
    /// The new key is the database's current key.
    public static let sameKey = Code(name: "sameKey")
    /// The key does not have 32 bytes, or another argument is invalid.
    public static let invalidArgument = Code(name: "invalidArgument")
    /// The disk is full.
    public static let diskFull = Code(name: "diskFull")
    /// Another user made a lock file or an unfinished file, or could have made it.
    public static let foreignFile = Code(name: "foreignFile")
    /// A file or its directory cannot be written.
    public static let readOnly = Code(name: "readOnly")
    /// A file or a lock failed.
    public static let inputOutput = Code(name: "inputOutput")
  }

  /// The kind of failure.
  public let code: Code
  /// The failure and its place; lower case, without a secret.
  public let message: String
  /// The next step, if there is one.
  public let hint: String?
  /// The error of the module below, if one was the cause.
  public let underlying: (any Error)?

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension VaultedDatabaseError {
  init(_ error: VaultError) {
    let code: Code =
      switch error.code {
      case .locked: .vaultLocked
      case .alreadySecured: .alreadySecured
      case .databaseStillExists: .databaseStillExists
      case .foreignFile: .foreignFile
      default: .vault
      }
    self.init(code, error.message, hint: error.hint, underlying: error)
  }

  init(_ error: SealedDatabaseError) {
    let code: Code =
      switch error.code {
      case .plainDatabase: .plainDatabase
      case .newerVersion: .newerVersion
      case .damaged, .damagedPage, .damagedJournal, .truncated, .notSealed, .unrelatedCompanionFile:
        .damaged
      case .busy: .busy
      case .readOnly: .readOnly
      case .foreignFile: .foreignFile
      case .diskFull: .diskFull
      case .sameKey: .sameKey
      default: .database
      }
    self.init(code, error.message, hint: error.hint, underlying: error)
  }

  /// The error for any failure in a protocol.
  init(any error: any Error) {
    switch error {
    case let error as VaultedDatabaseError: self = error
    case let error as VaultError: self.init(error)
    case let error as SealedDatabaseError: self.init(error)
    case let error as SealedFileError: self.init(error)
    case let error as FileError: self.init(error)
    default: self.init(.database, "the database failed: \(error)", underlying: error)
    }
  }

  init(_ error: SealedFileError) {
    self.init(SealedDatabaseError(error))
  }

  init(_ error: FileError) {
    switch error.errno {
    case _ where error.refusal != nil:
      self.init(.foreignFile, error.description, hint: error.hint, underlying: error)
    case .noSpace, .diskQuotaExceeded:
      self.init(.diskFull, error.description, hint: "free some space", underlying: error)
    case .readOnlyFileSystem, .permissionDenied, .notPermitted:
      self.init(
        .readOnly, error.description, hint: "check its owner, its permissions and its mount",
        underlying: error)
    default: self.init(.inputOutput, error.description, underlying: error)
    }
  }

  /// The error for a refusal of ``OpeningDecision``.
  static func refusal(_ code: Code, of home: DataVaultHome) -> VaultedDatabaseError {
    refusal(code, home.databasePath)
  }

  /// The same for a database at another path.
  static func refusal(_ code: Code, _ path: FilePath) -> VaultedDatabaseError {
    switch code {
    case .keyMissing:
      VaultedDatabaseError(
        code, "the database \(path) exists, but there is no vault that could hold its key",
        hint: "restore the vault file from a backup; without it the database cannot be opened")
    case .databaseMissing:
      VaultedDatabaseError(
        code, "the vault belongs to the database \(path), which does not exist",
        hint: "mount the volume or restore the database; if this is a first run after an earlier "
          + "installation, clean up with: datavault clean-up-first-run")
    case .databaseMismatch:
      VaultedDatabaseError(
        code, "the database \(path) does not belong to this vault",
        hint: "restore vault and database together, or move one of them away")
    case .plainDatabase:
      VaultedDatabaseError(
        code, "\(path) is a plain SQLite database, not a sealed one",
        hint: "move it away; nothing was written to it")
    case .newerVersion:
      VaultedDatabaseError(
        code, "\(path) was written by a newer version of this software",
        hint: "use that version; nothing was written to it")
    default:
      VaultedDatabaseError(
        code, "\(path) does not begin like the vault's database",
        hint:
          "keep the files unchanged, or copy them; run datavault queue salvage to rescue intact rows"
      )
    }
  }
}
