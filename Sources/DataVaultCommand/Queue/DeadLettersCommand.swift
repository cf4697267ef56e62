internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue dead-letters`.
struct DeadLettersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead-letters",
    abstract: "Manage the messages that are no longer delivered to a consumer.",
    discussion: """
      Example:
        datavault queue dead-letters orders
        datavault queue dead-letters move orders --to orders-failed
      """,
    subcommands: [
      DeadLettersListCommand.self, DeadLettersRemoveCommand.self, DeadLettersMoveCommand.self,
    ],
    defaultSubcommand: DeadLettersListCommand.self)
}

/// The command `datavault queue dead-letters list CHANNEL`.
struct DeadLettersListCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the messages that are no longer delivered to a consumer.",
    discussion: """
      The command does not show payloads. 'queue history' does, and changes nothing. To process the \
      messages, return them with 'queue redrive', then take them with 'queue receive'.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    let letters = try await runEngine { engine in
      var letters: [DeadLetter] = []
      while true {
        let page = try await engine.deadLetters(
          of: channel, for: consumer, after: letters.last?.timetoken)
        if page.isEmpty { return letters }
        letters += page
      }
    }
    try report.print(DeadLettersReport(channel, consumer, letters)) {
      table(
        ["TIMETOKEN", "BYTES", "ATTEMPTS", "REASON"],
        letters.map {
          [
            "\($0.timetoken)", OutputDescriptor.size(byteCount: $0.payload.count),
            "\($0.attemptCount)", $0.reason,
          ]
        })
    }
  }
}

/// The JSON report of `queue dead-letters`.
private struct DeadLettersReport: Encodable {
  struct Letter: Encodable {
    let timetoken: String
    let bytes: Int
    let attempts: Int
    let reason: String
    /// RFC 3339.
    let died: String
    let failures: [FailureReport]
  }

  let channel: String
  let consumer: String
  let deadLetters: [Letter]

  init(_ channel: Channel, _ consumer: Consumer, _ letters: [DeadLetter]) {
    self.channel = channel.name
    self.consumer = consumer.name
    deadLetters = letters.map { letter in
      Letter(
        timetoken: letter.timetoken.description, bytes: letter.payload.count,
        attempts: letter.attemptCount, reason: letter.reason,
        died: DateArgument(ticks: letter.deadLetteredTicks).text,
        failures: letter.failures.map(FailureReport.init))
    }
  }
}

/// The dead letters that a command changes: some, or all.
struct DeadLetterSelection: ParsableArguments {
  @Argument(help: "The channel.", completion: Completion.channels) var channel: String
  @Argument(help: ArgumentHelp("The dead letters. Give them, or --all.", valueName: "timetoken"))
  var timetokens: [Timetoken] = []
  @Flag(help: "All dead letters of the consumer.") var all = false
  @OptionGroup var consumer: ConsumerOptions

  func validate() throws {
    guard all == timetokens.isEmpty else {
      throw ValidationError("give the timetokens of dead letters, or --all")
    }
  }

  /// Throws unless `count` dead letters are as many as were named.
  func require(_ count: Int, _ done: String) throws {
    guard !all, count < timetokens.count else { return }
    throw CommandFailure(
      .notFound,
      "\(timetokens.count - count) of \(timetokens.count) messages are not dead letters of "
        + "\(try consumer.consumer()); the others were \(done)",
      hint: "to list them, run datavault queue dead-letters")
  }
}

/// The command `datavault queue dead-letters remove CHANNEL`.
struct DeadLettersRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Delete dead letters for good.")

  @OptionGroup var selection: DeadLetterSelection
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(selection.channel)
    let number = selection.all ? "all" : "\(selection.timetokens.count)"
    try confirmation.require("delete \(number) dead letters of channel '\(channel.name)'")
    let consumer = try selection.consumer.consumer()
    let chosen = selection.all ? nil : selection.timetokens
    let count = try await runEngine(changes: true) {
      try await $0.removeDeadLetters(chosen, of: channel, for: consumer)
    }
    try selection.require(count, "deleted")
    try confirm("deleted \(count) dead letters")
  }
}

/// The command `datavault queue dead-letters move CHANNEL --to CHANNEL`.
struct DeadLettersMoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "move", abstract: "Publish dead letters to another channel, and delete them.",
    discussion: """
      The messages keep their content, headers, priority and ordering key, and get new timetokens.
      """)

  @Option(
    name: .customLong("to"), help: ArgumentHelp("The other channel.", valueName: "channel"),
    completion: Completion.channels)
  var target: String

  @OptionGroup var selection: DeadLetterSelection
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let (channel, target) = (try Channel(selection.channel), try Channel(target))
    let consumer = try selection.consumer.consumer()
    let chosen = selection.all ? nil : selection.timetokens
    let count = try await runEngine(changes: true) {
      try await $0.moveDeadLetters(chosen, of: channel, for: consumer, to: target)
    }
    try selection.require(count, "moved")
    try confirm("moved \(count) dead letters to channel '\(target.name)'")
  }
}

/// The command `datavault queue redrive CHANNEL [TIMETOKEN ...]`.
struct RedriveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "redrive", abstract: "Return dead letters to their consumer, ready for delivery.")

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Argument(help: ArgumentHelp("The dead letters to return. Default: all.", valueName: "timetoken"))
  var timetokens: [Timetoken] = []

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    let chosen = timetokens.isEmpty ? nil : timetokens
    let count = try await runEngine(changes: true) {
      try await $0.redrive(chosen, of: channel, for: consumer)
    }
    if let chosen, count < chosen.count {
      throw CommandFailure(
        .notFound,
        "\(chosen.count - count) of \(chosen.count) messages are not dead letters of \(consumer); "
          + "the others were returned", hint: "to list them, run datavault queue dead-letters")
    }
    try confirm("returned \(count) dead letters")
  }
}
