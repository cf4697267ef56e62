internal import ArgumentParser
internal import MessagingQueue

/// What the commands have in common that settle what `queue receive --no-ack --ndjson` has leased.
struct LeaseOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("The leases, as receive printed them.", valueName: "token"))
  var tokens: [LeaseTokenArgument]

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func settle(
    _ verb: (MessagingEngine, [LeaseToken]) async throws -> Void
  ) async throws {
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    try await access.run { try await verb($0, tokens.map(\.token)) }
  }
}

/// `datavault queue ack TOKEN`.
struct AckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ack", abstract: "Acknowledge messages: they are never delivered again.")

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle { try await $0.acknowledge($1) }
  }
}

/// `datavault queue release TOKEN`.
struct ReleaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Give messages back, to be received again.")

  @Option(
    name: .customLong("delay"),
    help: ArgumentHelp("Not before this time is over: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var delay: DurationArgument?

  @Option(
    name: .customLong("reason"),
    help: ArgumentHelp("Why, for the history of a dead letter.", valueName: "text"))
  var reason: String?

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle {
      try await $0.release($1, after: delay?.duration ?? .zero, reason: reason)
    }
  }
}

/// `datavault queue reject TOKEN`.
struct RejectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reject", abstract: "Give up on messages: they become dead letters.")

  @Option(name: .customLong("reason"), help: ArgumentHelp("Why.", valueName: "text"))
  var reason: String

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle { try await $0.reject($1, reason: reason) }
  }
}

/// `datavault queue extend TOKEN`.
struct ExtendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "extend", abstract: "Keep messages leased for longer, or shorter.")

  @Option(
    name: .customLong("lease"),
    help: ArgumentHelp("From now on: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var lease = DurationArgument.standardLease

  @OptionGroup var leases: LeaseOptions

  func run() async throws {
    try await leases.settle { try await $0.extend($1, by: lease.duration) }
  }
}
