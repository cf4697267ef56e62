internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue consumers`.
struct ConsumersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "consumers", abstract: "Manage a channel's consumers.",
    discussion: """
      Example:
        datavault queue consumers add orders billing --attempts 5

      Each consumer gets every message of the channel. A message stays until all consumers have \
      acknowledged it. The first 'queue receive' of a consumer creates it, and so does \
      'consumers add'.
      """,
    subcommands: [
      ConsumersListCommand.self, ConsumersAddCommand.self, ConsumersRemoveCommand.self,
    ],
    defaultSubcommand: ConsumersListCommand.self)
}

/// The command `datavault queue consumers list CHANNEL`.
struct ConsumersListCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List a channel's consumers and their message counts.")

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let statistics = try await runEngine { try await $0.statistics(of: channel) }
    let consumers = (statistics?.consumers ?? []).map(ConsumerReport.init)
    try report.print(ConsumersReport(channel: channel.name, consumers: consumers)) {
      table(
        ["CONSUMER", "ATTEMPTS"] + ConsumerReport.header,
        consumers.map { [$0.consumer, $0.maximumAttempts.map(String.init) ?? "any"] + $0.cells })
    }
  }
}

/// The JSON report of `queue consumers list`.
private struct ConsumersReport: Encodable {
  let channel: String
  let consumers: [ConsumerReport]
}

/// The command `datavault queue consumers add CHANNEL NAME`.
struct ConsumersAddCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Create a consumer at the oldest message, or change its attempt limit.")

  @OptionGroup var consumer: ConsumerArguments

  @Option(
    name: .customLong("attempts"),
    help: ArgumentHelp(
      "Deliveries after which a message becomes a dead letter. Default: no limit.", valueName: "n"))
  var maximumAttempts: Int?

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    if let maximumAttempts, maximumAttempts < 1 {
      throw ValidationError("--attempts must be at least 1")
    }
  }

  func run() async throws {
    let (channel, consumer) = try consumer.parsed()
    try await runEngine(changes: true) {
      try await $0.addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts)
    }
    try confirm("set up consumer '\(consumer.name)' of channel '\(channel.name)'")
  }
}

/// The command `datavault queue consumers remove CHANNEL NAME`.
struct ConsumersRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a consumer with its leases and dead letters.",
    discussion: """
      Messages that no other consumer needs are deleted, unless the channel keeps acknowledged \
      messages. If it was the only consumer, they stay for later ones.
      """)

  @OptionGroup var consumer: ConsumerArguments
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let (channel, consumer) = try consumer.parsed()
    try confirmation.require(
      "remove consumer '\(consumer.name)' of channel '\(channel.name)', and what only it needs")
    guard
      try await runEngine(
        changes: true, { try await $0.removeConsumer(consumer, of: channel) })
    else {
      throw CommandFailure(
        .notFound,
        "consumer '\(consumer.name)' not found in channel '\(channel.name)'",
        hint: "to list the consumers, run datavault queue consumers list \(channel.name)")
    }
    try confirm("removed consumer '\(consumer.name)' of channel '\(channel.name)'")
  }
}

/// A channel and the name of one of its consumers.
struct ConsumerArguments: ParsableArguments {
  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Argument(help: "The consumer's name.") var name: String

  func parsed() throws -> (Channel, Consumer) { (try Channel(channel), try Consumer(name)) }
}

/// A consumer's message counts in the reports of `queue stats` and `queue consumers list`.
struct ConsumerReport: Encodable {
  let consumer: String
  /// Absent if there is no limit.
  let maximumAttempts: Int?
  let ready: Int
  let leased: Int
  let delayed: Int
  let waiting: Int
  let deadLetters: Int
  /// Both absent if no message is ready, leased or waiting.
  let oldestTimetoken: String?
  let oldestAgeSeconds: Int64?

  init(_ statistics: EngineStatistics.ConsumerStatistics) {
    consumer = statistics.consumer.name
    maximumAttempts = statistics.maximumAttempts
    ready = statistics.readyCount
    leased = statistics.leasedCount
    delayed = statistics.delayedCount
    waiting = statistics.blockedCount
    deadLetters = statistics.deadLetterCount
    oldestTimetoken = statistics.oldest?.description
    oldestAgeSeconds = statistics.oldestAge?.components.seconds
  }

  /// The columns that the tables of both commands share.
  static let header = ["READY", "LEASED", "DELAYED", "WAITING", "DEAD", "AGE"]

  var cells: [String] {
    ["\(ready)", "\(leased)", "\(delayed)", "\(waiting)", "\(deadLetters)"]
      + [oldestAgeSeconds.map { OutputDescriptor.age(seconds: $0) } ?? "-"]
  }
}

/// The option that names the consumer of a command.
struct ConsumerOptions: ParsableArguments {
  @Option(
    name: .customLong("consumer"),
    help: ArgumentHelp(
      "Act as this consumer. Each consumer gets every message. Default: 'default'.",
      valueName: "name"))
  var name: String?

  func consumer() throws -> Consumer {
    try name.map(Consumer.init) ?? .default
  }
}
