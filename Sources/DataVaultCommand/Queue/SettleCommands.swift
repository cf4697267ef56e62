internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// A command that settles messages leased by `queue receive --no-ack --ndjson`.
private protocol SettlingCommand: AsyncParsableCommand, VaultAccess {
  var tokens: [LeaseToken] { get }
  func settle(_ engine: MessagingEngine) async throws
}

extension SettlingCommand {
  func run() async throws { try await runEngine { try await settle($0) } }
}

extension ArgumentHelp {
  fileprivate static let leaseTokens = ArgumentHelp(
    "The lease tokens that 'queue receive --no-ack --ndjson' printed.", valueName: "token")
}

/// The command `datavault queue ack TOKEN`.
struct AckCommand: SettlingCommand {
  static let configuration = CommandConfiguration(
    commandName: "ack", abstract: "Acknowledge leased messages. They are not delivered again.",
    discussion: """
      Example:
        datavault queue receive orders --max 1 --no-ack --ndjson
        datavault queue ack TOKEN
      """)

  @Argument(help: .leaseTokens) var tokens: [LeaseToken]
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func settle(_ engine: MessagingEngine) async throws {
    try await engine.acknowledge(tokens)
  }
}

/// The command `datavault queue release TOKEN`.
struct ReleaseCommand: SettlingCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Return leased messages to the queue.")

  @Option(
    help: ArgumentHelp("Deliver them after this time: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var delay: DurationArgument?

  @Option(help: ArgumentHelp("The reason, for the attempts of a dead letter.", valueName: "text"))
  var reason: String?

  @Argument(help: .leaseTokens) var tokens: [LeaseToken]
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func settle(_ engine: MessagingEngine) async throws {
    try await engine.release(tokens, after: delay?.duration ?? .zero, reason: reason)
  }
}

/// The command `datavault queue reject TOKEN`.
struct RejectCommand: SettlingCommand {
  static let configuration = CommandConfiguration(
    commandName: "reject", abstract: "Turn leased messages into dead letters.")

  @Option(help: ArgumentHelp("The reason.", valueName: "text"))
  var reason: String

  @Argument(help: .leaseTokens) var tokens: [LeaseToken]
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func settle(_ engine: MessagingEngine) async throws {
    try await engine.reject(tokens, reason: reason)
  }
}

/// The command `datavault queue extend TOKEN`.
struct ExtendCommand: SettlingCommand {
  static let configuration = CommandConfiguration(
    commandName: "extend", abstract: "Change how long messages stay leased.")

  @Option(help: ArgumentHelp("The new lease from now on: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var lease = DurationArgument.standardLease

  @Argument(help: .leaseTokens) var tokens: [LeaseToken]
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func settle(_ engine: MessagingEngine) async throws {
    try await engine.extend(tokens, by: lease.duration)
  }
}
