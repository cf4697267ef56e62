internal import DataVault
internal import FileLayer
internal import MessagingQueue
internal import SealedSQLite
internal import SealedVFS
internal import VaultedDatabase

/// What a command that fails says, and how the process then ends.
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

  /// Two lines for standard error.
  func report() {
    StandardError.say(message)
    if let hint { StandardError.hint(hint) }
  }
}

extension CommandFailure {
  /// Says any library's error in the terms of the command line.
  init(translating error: any Error) {
    switch error {
    case let failure as CommandFailure:
      self = failure
    case let error as EngineError:
      // Standard output, to which the engine has handed something.
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

  /// What is wrong with a key's place; what is wrong with a database comes as the other error.
  private static func status(of error: SealedFileError) -> ExitStatus {
    switch error.code {
    case .keyFileRefused: .notPermitted
    case .invalidArgument: .usage
    default: .inputOutput
    }
  }
}

/// How the process ends, after sysexits.h.
enum ExitStatus: Int32 {
  /// The command line is wrong.
  case usage = 64
  /// Input, vault or database is damaged, foreign, plain, or of a newer version.
  case badData = 65
  /// There is no such vault, item or database.
  case absent = 66
  /// The store cannot be reached.
  case unavailable = 69
  /// It exists already, or is secured already.
  case exists = 73
  /// Input or output failed: the disk is full, the pipe is closed.
  case inputOutput = 74
  /// Busy, or backing off: the same command may succeed later.
  case tryLater = 75
  /// Wrong password, locked, no password source, loose permissions.
  case notPermitted = 77
  /// A rule forbids it.
  case policy = 78
}
