internal import DataVault
internal import FileLayer
internal import SealedVFS
internal import SystemPackage

/// The error of using a database and its vault together.
public struct VaultedDatabaseError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; a new version can add members.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    init(_ name: String) { description = name }

    /// The vault is locked: unlock it first.
    public static let vaultLocked = Code("vaultLocked")
    /// The database exists, but no vault that could hold its key.
    public static let keyMissing = Code("keyMissing")
    /// The vault belongs to a database that is missing.
    public static let databaseMissing = Code("databaseMissing")
    /// The database belongs to another vault, or to none.
    public static let databaseMismatch = Code("databaseMismatch")
    /// An unencrypted SQLite file has the path of the sealed database.
    public static let plainDatabase = Code("plainDatabase")
    /// The database was written by a newer version.
    public static let newerVersion = Code("newerVersion")
    /// The database is damaged.
    public static let damaged = Code("damaged")
    /// The database is an older copy or has lost its last commits: it lacks its vault's anchor.
    public static let rolledBack = Code("rolledBack")
    /// A new home or a backup has a name that is taken.
    public static let alreadyExists = Code("alreadyExists")
    /// The vault already has other credentials than the standard ones.
    public static let alreadySecured = Code("alreadySecured")
    /// Another connection or process holds the database or its lock.
    public static let busy = Code("busy")
    /// The database of the vault to delete still exists.
    public static let databaseStillExists = Code("databaseStillExists")
    /// The vault failed; ``VaultedDatabaseError/underlying`` is a `VaultError`.
    public static let vault = Code("vault")
    /// The sealed database failed; ``VaultedDatabaseError/underlying`` is a `SealedDatabaseError`.
    public static let database = Code("database")
    /// The profile already has another key.
    public static let keyExists = Code("keyExists")
    /// The new key is the database's current key.
    public static let sameKey = Code("sameKey")
    /// The key does not have 32 bytes, or another argument is invalid.
    public static let invalidArgument = Code("invalidArgument")
    /// The disk is full.
    public static let diskFull = Code("diskFull")
    /// Another user made a lock file or an unfinished file, or could have made it.
    public static let foreignFile = Code("foreignFile")
    /// A file or its directory cannot be written.
    public static let readOnly = Code("readOnly")
    /// A file or a lock failed.
    public static let inputOutput = Code("inputOutput")
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
      case .damagedPage, .damagedJournal, .truncated, .reserveInUse, .notSealed,
        .unrelatedCompanionFile:
        .damaged
      case .notFound: .databaseMissing
      case let code where Self.sealedCodes.contains(code): Code(code.description)
      default: .database
      }
    self.init(code, error.message, hint: error.hint, underlying: error)
  }

  /// The codes of a sealed database that keep their names.
  private static let sealedCodes: Set<SealedDatabaseError.Code> = [
    .busy, .damaged, .diskFull, .foreignFile, .inputOutput, .newerVersion, .plainDatabase,
    .readOnly, .sameKey,
  ]

  /// The error for any failure in a protocol.
  init(any error: any Error) {
    switch error {
    case let error as VaultedDatabaseError: self = error
    case let error as VaultError: self.init(error)
    case let error as SealedDatabaseError: self.init(error)
    case let error as FileError: self.init(SealedDatabaseError(error))
    default: self.init(.database, "the database failed: \(error)", underlying: error)
    }
  }

  /// The error for a database that its vault names, and that no key of the vault opens.
  static func noKeyFits(_ path: FilePath) -> VaultedDatabaseError {
    VaultedDatabaseError(
      .damaged, "no key of the vault opens \(path), although it names this database",
      hint: "restore vault and database together from one backup")
  }

  /// No engine or program has made the vault's database yet.
  static func notCreated(_ path: FilePath) -> VaultedDatabaseError {
    VaultedDatabaseError(
      .databaseMissing, "the database \(path) does not exist yet",
      hint: "the first start of an engine creates it")
  }

  /// The error for a refusal of ``OpeningDecision``, for the database at a path.
  static func refusal(_ code: Code, _ path: FilePath) -> VaultedDatabaseError {
    switch code {
    case .keyMissing:
      VaultedDatabaseError(
        code,
        "the database \(path) or its log exists, but there is no vault that could hold its key",
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

extension SealedDatabaseError {
  /// Whether a change of key can wait after this error: a process uses the database, or it cannot
  /// be copied now.
  var leavesOldKeyUsable: Bool {
    [.busy, .damagedPage, .truncated, .diskFull, .readOnly].contains(code)
  }
}
