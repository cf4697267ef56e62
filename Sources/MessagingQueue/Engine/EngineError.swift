internal import DataVault
internal import FileLayer
internal import GRDB
internal import SystemPackage
internal import VaultedDatabase

/// Why the engine did not do what it was asked.
///
/// An error never carries a payload, a password or a key.
public struct EngineError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure, to be compared with the static members; new ones may be added.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the member.
    public let description: String

    init(_ name: String) { description = name }
  }

  /// What kind of failure.
  public let code: Code

  /// What went wrong and where, in lower case.
  public let message: String

  /// What to do next, where there is something to do.
  public let hint: String?

  /// The error of the layer below, if one was the cause.
  public let underlying: (any Error)?

  /// The tokens that settled nothing, with ``Code/unknownLease``; all others were settled.
  public let unknownLeases: [LeaseToken]

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil,
    unknownLeases: [LeaseToken] = []
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
    self.unknownLeases = unknownLeases
  }

  /// The message, and the hint in brackets.
  public var description: String {
    if let hint { "\(message) (\(hint))" } else { message }
  }
}

extension EngineError.Code {
  /// The messaging vault is locked and the user's password is needed to open it.
  public static let vaultLocked = Self("vaultLocked")
  /// The password or the salt is not the vault's.
  public static let wrongPassword = Self("wrongPassword")
  /// There is no vault where one was: it was handed in, a session opens it, or a secured one is required.
  public static let vaultMissing = Self("vaultMissing")
  /// The vault is not secured, and ``EngineConfiguration/requiresSecuredVault`` is set.
  public static let notSecured = Self("notSecured")
  /// There is a database and no vault that could hold its key.
  public static let keyMissing = Self("keyMissing")
  /// The vault belongs to a database that is not there.
  public static let databaseMissing = Self("databaseMissing")
  /// The database belongs to another vault, or to none.
  public static let databaseMismatch = Self("databaseMismatch")
  /// The database is an older copy, or has lost its last commits.
  public static let rolledBack = Self("rolledBack")
  /// The engine was stopped.
  public static let stopped = Self("stopped")
  /// An unencrypted SQLite file lies where the encrypted database belongs.
  public static let plainDatabase = Self("plainDatabase")
  /// A payload is over ``EngineConfiguration/maximumPayloadByteCount``.
  public static let payloadTooLarge = Self("payloadTooLarge")
  /// A channel name is empty, too long or holds control characters.
  public static let invalidChannel = Self("invalidChannel")
  /// A count, a lease or a delay is out of range.
  public static let invalidArgument = Self("invalidArgument")
  /// A delivery was settled already, or has been leased to another since.
  public static let unknownLease = Self("unknownLease")
  /// Another process held the database past the busy timeout; nothing was changed.
  public static let busy = Self("busy")
  /// Retention, a purge or the consumers removed messages before a live reader saw them.
  public static let messagesRemoved = Self("messagesRemoved")
  /// The file system is full; nothing was changed.
  public static let diskFull = Self("diskFull")
  /// The database may only be read.
  public static let readOnly = Self("readOnly")
  /// The database is damaged, or is not one of the engine's.
  public static let damaged = Self("damaged")
  /// The database was written by a newer version of this software.
  public static let newerVersion = Self("newerVersion")
  /// A commit met an I/O error: whether what it was to store is on the disk is unknown.
  ///
  /// A retry with the same deduplication id settles it.
  public static let outcomeUnknown = Self("outcomeUnknown")
  /// The caller's task was cancelled before anything was done.
  public static let cancelled = Self("cancelled")
  /// Reading or writing failed in the system; nothing was changed.
  public static let inputOutput = Self("inputOutput")
  /// Something has the name already that a new file is to get, or messages that are to be imported are
  /// here already.
  public static let alreadyExists = Self("alreadyExists")
  /// A lock file, or an unfinished file, is not this user's alone: another user made it, or could have.
  public static let foreignFile = Self("foreignFile")
  /// There is no channel of that name.
  public static let channelMissing = Self("channelMissing")
  /// There is no file of messages to be imported.
  public static let fileMissing = Self("fileMissing")
  /// A file of messages is not what it should be; the message names the line.
  public static let invalidFile = Self("invalidFile")
  /// The vault could not be used; ``EngineError/underlying`` has its error.
  public static let vault = Self("vault")
}

extension EngineError {
  /// What a refusal of ``StartDecision`` says.
  init(refusing code: Code, _ home: DataVaultHome) {
    switch code {
    case .keyMissing:
      self.init(
        code, "there are messages in \(home.path), but no vault that has their key",
        hint: "restore vaults/messaging.vault from a backup")
    case .vaultMissing:
      self.init(
        code, "the messaging vault is not in \(home.path), and none was made in its place",
        hint:
          "check that this is the right home and that its file system is mounted; in a new home "
          + "run datavault lock \(VaultID.messaging) and datavault secure first")
    case .notSecured:
      self.init(
        code,
        "the messaging vault in \(home.path) opens with the publicly known password, and a secured one "
          + "is required", hint: "run datavault secure")
    default:
      self.init(
        code, "the messaging vault in \(home.path) is locked",
        hint: "run datavault unlock \(VaultID.messaging) as this user, or give its password")
    }
  }

  /// Says what an error of the vault or of opening the database means to whoever starts an engine.
  init(starting error: any Error) {
    switch error {
    case let error as EngineError:
      self = error
    case let error as VaultedDatabaseError:
      self.init(error)
    case let error as VaultError:
      self.init(Self.code(of: error), error.message, hint: error.hint, underlying: error)
    default:
      self.init(translating: error, during: "starting the engine")
    }
  }

  private init(_ error: VaultedDatabaseError) {
    if let code = Self.startCodes[error.code] {
      let hint = code == .damaged ? Self.damageHint : nil
      self.init(code, error.message, hint: error.hint ?? hint, underlying: error)
    } else if let cause = error.underlying, cause is VaultError || cause is EngineError {
      self.init(starting: cause)
    } else {
      self.init(.inputOutput, error.message, hint: error.hint, underlying: error)
    }
  }

  private static let startCodes: [VaultedDatabaseError.Code: Code] = [
    .vaultLocked: .vaultLocked, .keyMissing: .keyMissing, .databaseMissing: .databaseMissing,
    .databaseMismatch: .databaseMismatch, .plainDatabase: .plainDatabase,
    .newerVersion: .newerVersion, .damaged: .damaged, .busy: .busy, .diskFull: .diskFull,
    .readOnly: .readOnly, .rolledBack: .rolledBack, .foreignFile: .foreignFile,
  ]

  private static func code(of error: VaultError) -> Code {
    switch error.code {
    case .wrongPassword: .wrongPassword
    case .locked, .sessionStale: .vaultLocked
    case .doesNotExist: .vaultMissing
    case .damaged: .damaged
    case .newerVersion: .newerVersion
    default: .vault
    }
  }
}

extension EngineError {
  static let engineRowMissing = EngineError(
    .damaged, "the message database has lost its state row",
    hint: "restore the home directory from a backup")

  /// Says what an error of GRDB or SQLite means to the engine's caller.
  ///
  /// SQLite's message and the statement with its arguments are left out, of the error beneath too:
  /// they can quote what was being stored.
  init(translating error: any Error, during operation: String) {
    switch error {
    case let error as EngineError:
      self = error
    case let error as DatabaseError:
      self.init(
        resultCode: error.resultCode, during: operation,
        underlying: DatabaseError(resultCode: error.extendedResultCode))
    default:
      self.init(
        .inputOutput, "\(operation) failed",
        hint: "look at the error beneath, and at the system's log", underlying: error)
    }
  }

  static let damageHint = "keep the files as they are and restore a backup"

  /// `SQLITE_IOERR_DATA`: the sealed VFS answers it for what it cannot authenticate.
  private static let damagedPage: Int32 = 10 | 32 << 8

  private init(resultCode: ResultCode, during operation: String, underlying: DatabaseError) {
    let code = underlying.extendedResultCode.rawValue
    switch resultCode {
    case .SQLITE_IOERR where code == Self.damagedPage:
      self.init(
        .damaged, "\(operation): a page of the message database is damaged",
        hint: Self.damageHint, underlying: underlying)
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self.init(
        .busy, "\(operation): another process holds the message database; nothing was changed",
        hint: "try again", underlying: underlying)
    case .SQLITE_FULL:
      self.init(
        .diskFull, "\(operation): the disk is full; nothing was changed",
        hint: "make room on the file system of the home directory", underlying: underlying)
    case .SQLITE_READONLY, .SQLITE_PERM:
      self.init(
        .readOnly, "\(operation): the message database may not be written",
        hint: "check the owner and the permissions of the home directory", underlying: underlying)
    case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH:
      self.init(
        .damaged, "\(operation): the message database is damaged (SQLite code \(code))",
        hint: Self.damageHint, underlying: underlying)
    default:
      self.init(
        .inputOutput, "\(operation): the message database failed (SQLite code \(code))",
        hint: "look at the system's log for errors of the disk", underlying: underlying)
    }
  }
}

/// Runs `body` and speaks of its failure in the engine's terms.
func translatingErrors<Result>(
  during operation: String, _ body: () throws -> Result
) throws(EngineError) -> Result {
  do {
    return try body()
  } catch {
    throw EngineError(translating: error, during: operation)
  }
}
