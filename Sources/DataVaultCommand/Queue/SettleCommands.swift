internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The arguments of the commands that settle messages leased by `queue receive --no-ack --ndjson`.
struct LeaseOptions: ParsableArguments, VaultAccess {
  @Argument(
    help: ArgumentHelp(
      "The lease tokens that 'queue receive --no-ack --ndjson' printed.", valueName: "token"))
  var tokens: [LeaseToken]

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func settle(
    _ operation: (MessagingEngine, [LeaseToken]) async throws -> Void
  ) async throws {
    try await runEngine { try await operation($0, tokens) }
  }
}

/// The command `datavault queue ack TOKEN`.
struct AckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ack", abstract: "Acknowledge leased messages. They are not delivered again.",
    discussion: """
      Example:
        datavault queue receive orders --max 1 --no-ack --ndjson
        datavault queue ack TOKEN
      """)

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle { try await $0.acknowledge($1) }
  }
}

/// The command `datavault queue release TOKEN`.
struct ReleaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Return leased messages to the queue.")

  @Option(
    help: ArgumentHelp("Deliver them after this time: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var delay: DurationArgument?

  @Option(help: ArgumentHelp("The reason, for the attempts of a dead letter.", valueName: "text"))
  var reason: String?

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle {
      try await $0.release($1, after: delay?.duration ?? .zero, reason: reason)
    }
  }
}

/// The command `datavault queue reject TOKEN`.
struct RejectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reject", abstract: "Turn leased messages into dead letters.")

  @Option(help: ArgumentHelp("The reason.", valueName: "text"))
  var reason: String

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle { try await $0.reject($1, reason: reason) }
  }
}

/// The command `datavault queue extend TOKEN`.
struct ExtendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "extend", abstract: "Change how long messages stay leased.")

  @Option(help: ArgumentHelp("The new lease from now on: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var lease = DurationArgument.standardLease

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle { try await $0.extend($1, by: lease.duration) }
  }
}
