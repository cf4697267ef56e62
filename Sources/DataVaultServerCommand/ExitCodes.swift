package import AccessControl
package import ApplicationStore
package import CommandInterface
package import JetStreamLog
package import MessagingServer

/// The exit codes of the server's errors. `docs/reference/exit-codes.md` explains them.
extension ApplicationStoreError: ErrorWithExitCode {
  package static let exitCodes: [Code: ExitStatus?] = [
    .engine: nil, .vault: nil,
    .invalidArgument: .usage, .reservedName: .usage,
    .damaged: .badData, .foreignTable: .badData, .newerVersion: .badData, .wrongKey: .badData,
    .keyMissing: .notFound, .unknownApplication: .notFound, .unknownGrant: .notFound,
    .unknownUser: .notFound, .unknownWebhook: .notFound,
    .alreadyExists: .exists,
    .libraryFailure: .inputOutput,
    .tooManyApplications: .policy, .tooManyChannels: .policy, .tooManyGrants: .policy,
    .tooManyGroups: .policy, .tooManyUsers: .policy,
    .tooManyWebhooks: .policy,
  ]
}

extension LogError: ErrorWithExitCode {
  package var underlying: (any Error)? { nil }

  package static let exitCodes: [Code: ExitStatus?] = [
    .invalidSettings: .usage,
    .foreignStream: .badData,
    .streamMissing: .notFound,
    .streamExists: .exists,
    .closed: .inputOutput,
    .noAnswer: .tryLater, .unreachable: .unavailable,
    .notPermitted: .notPermitted,
  ]
}

extension AccessError: ErrorWithExitCode {
  package var underlying: (any Error)? { nil }

  package static let exitCodes: [Code: ExitStatus?] = [
    .invalidApplication: .usage, .invalidGrant: .usage, .invalidName: .usage,
    .invalidPassword: .badData, .invalidPattern: .usage, .invalidToken: .usage,
  ]
}

extension ServerError: ErrorWithExitCode {
  package var underlying: (any Error)? { nil }

  package static let exitCodes: [Code: ExitStatus?] = [
    .invalidCertificate: .badData,
    .cannotListen: .unavailable,
    .alreadyRunning: .tryLater,
    .exposed: .policy,
  ]
}
