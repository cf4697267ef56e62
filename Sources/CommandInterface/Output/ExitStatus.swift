package import DataVault
package import MessagingQueue
package import QueueReplication
package import SealedVFS
package import VaultedDatabase

/// The exit codes, from sysexits.h.
package enum ExitStatus: Int32, CaseIterable {
  case usage = 64
  case badData = 65
  case notFound = 66
  case unavailable = 69
  case exists = 73
  case inputOutput = 74
  case tryLater = 75
  case notPermitted = 77
  case policy = 78

  /// What it means, as the program's help says it.
  var meaning: String {
    switch self {
    case .usage: "The command line is wrong."
    case .badData: "The data is damaged, foreign, plain or of a newer version."
    case .notFound: "The vault, item or database does not exist."
    case .unavailable: "The vault store, a keyring or a needed program is unavailable."
    case .exists: "The target exists already."
    case .inputOutput: "Input or output failed."
    case .tryLater: "Busy, or waiting after wrong passwords: try again later."
    case .notPermitted: "Wrong password, locked vault, or no source for a password."
    case .policy: "A policy forbids it."
    }
  }

  /// The exit codes as a paragraph of a program's help.
  package static var listing: String {
    let codes = allCases.map { "\n  \($0.rawValue)  \($0.meaning)" }
    return "Exit codes:\(codes.joined())"
  }
}

/// An error type of the libraries, with a table of the exit codes of its error codes.
///
/// `docs/reference/exit-codes.md` explains the tables. A test compares it with them, and finds an
/// error code without a row.
package protocol ErrorWithExitCode: Error {
  associatedtype Code: Hashable
  var code: Code { get }
  var message: String { get }
  var hint: String? { get }
  var underlying: (any Error)? { get }

  /// Has one row for each error code; nil stands for the exit code of the error beneath.
  static var exitCodes: [Code: ExitStatus?] { get }
}

extension ErrorWithExitCode {
  /// The exit code of this error, by its code or by the error beneath.
  package var exitStatus: ExitStatus {
    if let status = Self.exitCodes[code] ?? nil { return status }
    return underlying.map { CommandFailure(translating: $0).status } ?? .inputOutput
  }
}

extension VaultError: ErrorWithExitCode {
  package static let exitCodes: [Code: ExitStatus?] = [
    .invalidArgument: .usage, .nameEmpty: .usage, .nameTooLong: .usage,
    .damaged: .badData, .newerVersion: .badData, .notSealedData: .badData,
    .secretTooLarge: .badData,
    .truncated: .badData,
    .valueTooLarge: .badData, .vaultFull: .badData, .wrongItemKind: .badData,
    .doesNotExist: .notFound, .itemNotFound: .notFound, .keyMissing: .notFound,
    .slotNotFound: .notFound,
    .keyringUnavailable: .unavailable,
    .sessionsUnavailable: .unavailable, .storeUnavailable: .unavailable, .unsupported: .unavailable,
    .alreadyExists: .exists, .alreadySecured: .exists, .slotExists: .exists,
    .fileSizeLimit: .inputOutput, .openFileLimit: .inputOutput, .unreadable: .inputOutput,
    .writeFailed: .inputOutput,
    .busy: .tryLater, .keyChangePending: .tryLater, .tooManyAttempts: .tryLater,
    .foreignFile: .notPermitted, .keyFileLength: .notPermitted, .keyringLocked: .notPermitted,
    .locked: .notPermitted,
    .permissionsTooOpen: .notPermitted, .recoveryCodeCharacter: .notPermitted,
    .recoveryCodeLength: .notPermitted, .recoveryCodeMistyped: .notPermitted,
    .secretUnavailable: .notPermitted, .sessionStale: .notPermitted,
    .slotSecretMissing: .notPermitted, .storeLocked: .notPermitted,
    .wrongPassword: .notPermitted,
    .databaseStillExists: .policy, .lastSlot: .policy, .needsDigit: .policy, .needsLower: .policy,
    .needsSpecial: .policy, .needsUpper: .policy, .notSecured: .policy, .passwordExpired: .policy,
    .passwordRequired: .policy, .passwordTooShort: .policy, .tooFewUniqueCharacters: .policy,
    .tooManySlots: .policy, .deletedByRetryLimit: .policy,
  ]
}

extension EngineError: ErrorWithExitCode {
  package static let exitCodes: [Code: ExitStatus?] = [
    .vault: nil,
    .invalidArgument: .usage, .invalidChannel: .usage,
    .damaged: .badData, .databaseMismatch: .badData, .invalidFile: .badData,
    .invalidPayload: .badData, .newerVersion: .badData, .payloadTooLarge: .badData,
    .plainDatabase: .badData,
    .rolledBack: .badData,
    .channelMissing: .notFound, .databaseMissing: .notFound, .fileMissing: .notFound,
    .keyMissing: .notFound, .messagesRemoved: .notFound, .unknownLease: .notFound,
    .vaultMissing: .notFound,
    .alreadyExists: .exists,
    .cancelled: .inputOutput, .diskFull: .inputOutput, .inputOutput: .inputOutput,
    .outcomeUnknown: .inputOutput, .readOnly: .inputOutput, .stopped: .inputOutput,
    .busy: .tryLater, .queueFull: .tryLater,
    .foreignFile: .notPermitted, .vaultLocked: .notPermitted, .wrongPassword: .notPermitted,
    .notSecured: .policy, .replicated: .policy,
  ]
}

extension ReplicationError: ErrorWithExitCode {
  package var underlying: (any Error)? { nil }

  package static let exitCodes: [Code: ExitStatus?] = [
    .alarm: .badData, .damaged: .badData, .duplicated: .badData, .newerVersion: .badData,
    .trimmed: .notFound,
    .stopped: .inputOutput,
    .state: .policy,
  ]
}

extension VaultedDatabaseError: ErrorWithExitCode {
  package static let exitCodes: [Code: ExitStatus?] = [
    .database: nil, .vault: nil,
    .invalidArgument: .usage, .sameKey: .usage,
    .damaged: .badData, .databaseMismatch: .badData, .newerVersion: .badData,
    .plainDatabase: .badData, .rolledBack: .badData,
    .databaseMissing: .notFound, .keyMissing: .notFound,
    .alreadyExists: .exists, .alreadySecured: .exists, .keyExists: .exists,
    .diskFull: .inputOutput, .inputOutput: .inputOutput, .readOnly: .inputOutput,
    .busy: .tryLater,
    .foreignFile: .notPermitted, .vaultLocked: .notPermitted,
    .databaseStillExists: .policy,
  ]
}

extension SealedDatabaseError: ErrorWithExitCode {
  package static let exitCodes: [Code: ExitStatus?] = [
    .invalidArgument: .usage, .keyInText: .usage, .keyNotNamed: .usage, .sameKey: .usage,
    .vacuumTargetRefused: .usage,
    .damaged: .badData, .damagedJournal: .badData, .damagedPage: .badData, .fileReplaced: .badData,
    .newerVersion: .badData, .notDatabaseFile: .badData, .notPlainDatabase: .badData,
    .notSealed: .badData, .otherPageSize: .badData, .plainDatabase: .badData,
    .reserveInUse: .badData, .truncated: .badData, .unrelatedCompanionFile: .badData,
    .notFound: .notFound,
    .alreadyExists: .exists,
    .diskFull: .inputOutput, .hiddenByVFS: .inputOutput, .inputOutput: .inputOutput,
    .notOnSealedVFS: .inputOutput, .readOnly: .inputOutput, .settingRefused: .inputOutput,
    .sqlite: .inputOutput,
    .busy: .tryLater, .notClosed: .tryLater,
    .foreignFile: .notPermitted, .keyFileRefused: .notPermitted, .wrongKey: .notPermitted,
    .wrongKeyOrNotSQLCipher: .notPermitted,
  ]
}
