internal import DataVault
internal import Foundation
internal import Glibc
internal import MessagingQueue

/// The exit codes of the daemon, from sysexits.h and equal to those of `datavault`.
///
/// The unit file restarts the daemon only after some of them. Another start with the same wrong
/// password would be another wrong attempt.
enum ExitStatus {
  /// Writes the error to standard error and returns its exit code.
  static func report(_ error: any Error) -> Int32 {
    try? FileHandle.standardError.write(contentsOf: Data("spoold: \(error)\n".utf8))
    return of(error)
  }

  private static func of(_ error: any Error) -> Int32 {
    switch error {
    case let error as DaemonError: error.status
    case let error as EngineError:
      if let cause = error.underlying as? VaultError {
        of(cause)
      } else {
        engineStatuses[error.code] ?? EX_IOERR
      }
    case let error as VaultError: vaultStatuses[error.code] ?? EX_IOERR
    default: EX_IOERR
    }
  }

  private static let engineStatuses: [EngineError.Code: Int32] = [
    .invalidChannel: EX_USAGE, .invalidArgument: EX_USAGE,
    .damaged: EX_DATAERR, .newerVersion: EX_DATAERR, .rolledBack: EX_DATAERR,
    .databaseMismatch: EX_DATAERR, .plainDatabase: EX_DATAERR,
    .keyMissing: EX_NOINPUT, .databaseMissing: EX_NOINPUT, .vaultMissing: EX_NOINPUT,
    .busy: EX_TEMPFAIL, .vaultLocked: EX_NOPERM, .wrongPassword: EX_NOPERM,
    .notSecured: EX_CONFIG,
  ]

  private static let vaultStatuses: [VaultError.Code: Int32] = [
    .damaged: EX_DATAERR, .newerVersion: EX_DATAERR, .doesNotExist: EX_NOINPUT,
    .sessionsUnavailable: EX_UNAVAILABLE, .tooManyAttempts: EX_TEMPFAIL, .busy: EX_TEMPFAIL,
    .wrongPassword: EX_NOPERM, .permissionsTooOpen: EX_NOPERM, .passwordExpired: EX_CONFIG,
    .deletedByRetryLimit: EX_CONFIG,
  ]
}
