internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue consumers`.
struct ConsumersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "consumers", abstract: "Who reads a channel.",
    discussion: """
      Each consumer gets every message, and a message stays until all have acknowledged it. A consumer is \
      made by its first receive, or beforehand.
      """,
    subcommands: [
      ConsumersListCommand.self, ConsumersAddCommand.self, ConsumersRemoveCommand.self,
    ],
    defaultSubcommand: ConsumersListCommand.self)
}

/// `datavault queue consumers list CHANNEL`.
struct ConsumersListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the consumers of a channel, and what is before each.")

  @Argument(help: ArgumentHelp("Whose consumers.", valueName: "channel"))
  var channel: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let statistics = try await access.run { try await $0.statistics(of: channel) }
    let consumers = (statistics?.consumers ?? []).map(ConsumerReport.init)
    try report.print(ConsumersReport(channel: channel.name, consumers: consumers)) {
      var table = Table(header: ["CONSUMER", "ATTEMPTS"] + ConsumerReport.header)
      for consumer in consumers {
        table.append(
          [consumer.consumer, consumer.maximumAttempts.map { "\($0)" } ?? "any"] + consumer.cells)
      }
      return table.text
    }
  }
}

/// The report of `queue consumers list` as JSON.
private struct ConsumersReport: Encodable {
  let channel: String
  let consumers: [ConsumerReport]
}

/// `datavault queue consumers add CHANNEL NAME`.
struct ConsumersAddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Make a consumer that begins with the oldest message, or change one's attempts.")

  @OptionGroup var consumer: ConsumerArguments

  @Option(
    name: .customLong("attempts"),
    help: ArgumentHelp(
      "After so many deliveries a message becomes a dead letter. Default: never.", valueName: "n"))
  var maximumAttempts: Int?

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    if let maximumAttempts, maximumAttempts < 1 {
      throw ValidationError("--attempts is at least 1")
    }
  }

  func run() async throws {
    let (channel, consumer) = try consumer.parsed()
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    try await access.run {
      try await $0.addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts)
    }
    try confirm("\(consumer.name) is a consumer of \(channel.name)")
  }
}

/// `datavault queue consumers remove CHANNEL NAME`.
struct ConsumersRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Forget a consumer, with its leases and its dead letters.",
    discussion: "What no other consumer needs leaves the log, unless the channel keeps it.")

  @OptionGroup var consumer: ConsumerArguments
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let (channel, consumer) = try consumer.parsed()
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    guard try await access.run({ try await $0.removeConsumer(consumer, of: channel) }) else {
      throw CommandFailure(
        .absent,
        "\(channel.name) has no consumer \(consumer.name)",
        hint: "list them with datavault queue consumers list")
    }
    try confirm("removed consumer \(consumer.name) of \(channel.name)")
  }
}

/// A channel and the name of one of its consumers.
struct ConsumerArguments: ParsableArguments {
  @Argument(help: ArgumentHelp("Whose consumer.", valueName: "channel"))
  var channel: String

  @Argument(help: ArgumentHelp("Its name.", valueName: "name"))
  var name: String

  func parsed() throws -> (Channel, Consumer) { (try Channel(channel), try Consumer(name)) }
}

/// What a consumer has before it, in the reports of `queue stats` and `queue consumers list`.
struct ConsumerReport: Encodable {
  let consumer: String
  /// Absent where there is no limit.
  let maximumAttempts: Int?
  let ready: Int
  let leased: Int
  let delayed: Int
  let waiting: Int
  let deadLetters: Int
  /// Both absent where nothing is ready, leased or waiting.
  let oldestTimetoken: String?
  let oldestAgeSeconds: Int64?

  init(_ statistics: EngineStatistics.ConsumerStatistics) {
    consumer = statistics.consumer.name
    maximumAttempts = statistics.maximumAttempts
    ready = statistics.readyCount
    leased = statistics.leasedCount
    delayed = statistics.delayedCount
    waiting = statistics.waitingCount
    deadLetters = statistics.deadLetterCount
    oldestTimetoken = statistics.oldest?.description
    oldestAgeSeconds = statistics.oldestAge?.components.seconds
  }

  /// The columns that both tables have.
  static let header = ["READY", "LEASED", "DELAYED", "WAITING", "DEAD", "AGE"]

  var cells: [String] {
    ["\(ready)", "\(leased)", "\(delayed)", "\(waiting)", "\(deadLetters)"]
      + [oldestAgeSeconds.map { "\($0)s" } ?? "-"]
  }
}

/// Whose view of a channel a command means.
struct ConsumerOptions: ParsableArguments {
  @Option(
    name: .customLong("consumer"),
    help: ArgumentHelp(
      "Read as this consumer: each name gets every message once. Default: default.",
      valueName: "name"))
  var name: String?

  func consumer() throws -> Consumer {
    try name.map(Consumer.init) ?? .default
  }
}
