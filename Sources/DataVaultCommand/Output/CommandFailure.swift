internal import DataVault
internal import FileLayer
internal import MessagingQueue
internal import SealedSQLite
internal import SealedVFS
internal import VaultedDatabase

/// The failure of a command: its message, its hint and the exit code.
struct CommandFailure: Error {
  let status: ExitStatus
  /// What went wrong, in lower case, without a secret.
  let message: String
  /// What to do next.
  let hint: String?

  init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }

  /// Writes the message and the hint to standard error, a line each.
  func report() {
    StandardError.say(message)
    if let hint { StandardError.hint(hint) }
  }
}

extension CommandFailure {
  /// Translates a library's error into a failure of the command.
  init(translating error: any Error) {
    switch error {
    case let failure as CommandFailure:
      self = failure
    case let error as EngineError:
      // The engine failed to write to standard output: that failure is the cause.
      if let failure = error.underlying as? CommandFailure {
        self = failure
        return
      }
      self.init(Self.status(of: error), error.message, hint: error.hint)
    case let error as VaultError:
      self.init(Self.status(of: error.code), error.message, hint: error.hint)
    case let error as VaultedDatabaseError:
      self.init(Self.status(of: error), error.message, hint: error.hint)
    case let error as SealedDatabaseError:
      self.init(Self.status(of: error), error.message, hint: error.hint)
    case let error as SealedFileError:
      self.init(Self.status(of: error), error.description, hint: error.hint)
    default:
      self.init(.inputOutput, "\(error)")
    }
  }

  private static func status(of error: EngineError) -> ExitStatus {
    switch error.code {
    case .vaultLocked, .wrongPassword, .foreignFile: .notPermitted
    case .keyMissing, .databaseMissing, .vaultMissing, .messagesRemoved, .unknownLease,
      .channelMissing, .fileMissing:
      .absent
    case .databaseMismatch, .plainDatabase, .rolledBack, .damaged, .newerVersion, .payloadTooLarge,
      .invalidFile:
      .badData
    case .alreadyExists: .exists
    case .invalidChannel, .invalidArgument: .usage
    case .busy: .tryLater
    case .notSecured: .policy
    case .vault:
      (error.underlying as? VaultError).map { status(of: $0.code) } ?? .inputOutput
    default: .inputOutput
    }
  }

  static func status(of code: VaultError.Code) -> ExitStatus {
    switch code {
    case .wrongPassword, .locked, .sessionStale, .permissionsTooOpen, .storeLocked: .notPermitted
    case .foreignFile, .recoveryCodeLength, .recoveryCodeCharacter, .recoveryCodeMistyped,
      .keyFileLength, .slotSecretMissing:
      .notPermitted
    case .doesNotExist, .itemNotFound, .slotNotFound, .keyMissing: .absent
    case .alreadyExists, .alreadySecured, .slotExists: .exists
    case .damaged, .newerVersion, .notSealedData, .truncated, .valueTooLarge, .vaultFull,
      .wrongItemKind:
      .badData
    case .invalidArgument, .nameEmpty, .nameTooLong: .usage
    case .storeUnavailable, .sessionsUnavailable, .unsupported: .unavailable
    case .keyChangePending, .tooManyAttempts, .busy: .tryLater
    case .databaseStillExists, .lastSlot, .tooManySlots, .notSecured: .policy
    case .wiped, .passwordRequired, .passwordTooShort, .needsDigit, .needsUpper, .needsLower,
      .needsSpecial, .tooFewUniqueCharacters, .passwordExpired:
      .policy
    default: .inputOutput
    }
  }

  private static func status(of error: VaultedDatabaseError) -> ExitStatus {
    switch error.code {
    case .vaultLocked, .foreignFile: .notPermitted
    case .keyMissing, .databaseMissing: .absent
    case .databaseMismatch, .plainDatabase, .rolledBack, .damaged, .newerVersion: .badData
    case .alreadySecured: .exists
    case .busy: .tryLater
    case .databaseStillExists: .policy
    default: error.underlying.map { CommandFailure(translating: $0).status } ?? .inputOutput
    }
  }

  private static func status(of error: SealedDatabaseError) -> ExitStatus {
    switch error.code {
    case .wrongKey, .wrongKeyOrNotSQLCipher, .foreignFile: .notPermitted
    case .plainDatabase, .notSealed, .notPlainDatabase, .newerVersion, .damaged, .damagedPage,
      .damagedJournal, .unrelatedCompanionFile, .truncated, .moved:
      .badData
    case .absent: .absent
    case .alreadyExists: .exists
    case .busy, .notClosed: .tryLater
    case .invalidArgument, .sameKey: .usage
    default: .inputOutput
    }
  }

  /// The exit code for an error about a key's location.
  ///
  /// Errors about a database are `SealedDatabaseError`s.
  private static func status(of error: SealedFileError) -> ExitStatus {
    switch error.code {
    case .keyFileRefused: .notPermitted
    case .invalidArgument: .usage
    default: .inputOutput
    }
  }
}

/// The exit codes, from sysexits.h.
enum ExitStatus: Int32 {
  /// The command line is wrong.
  case usage = 64
  /// The input, the vault or the database is damaged, foreign, plain or of a newer version.
  case badData = 65
  /// The vault, item or database does not exist.
  case absent = 66
  /// The store, or the kernel's keyring, is unavailable.
  case unavailable = 69
  /// The target exists already, or is secured already.
  case exists = 73
  /// Input or output failed: for example the disk is full, or the pipe is closed.
  case inputOutput = 74
  /// Busy, or waiting after wrong passwords: the same command can succeed later.
  case tryLater = 75
  /// Wrong password, locked vault, no source for a password, or permissions that are too open.
  case notPermitted = 77
  /// A policy forbids it.
  case policy = 78
}
