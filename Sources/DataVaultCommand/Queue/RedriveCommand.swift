internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue redrive CHANNEL [TIMETOKEN ...]`.
struct RedriveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "redrive", abstract: "Give dead letters back to their consumer, ready at once.")

  @Argument(help: ArgumentHelp("Whose dead letters.", valueName: "channel"))
  var channel: String

  @Argument(help: ArgumentHelp("Which of them; all by default.", valueName: "timetoken"))
  var timetokens: [TimetokenArgument] = []

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    let chosen = timetokens.isEmpty ? nil : timetokens.map(\.timetoken)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let count = try await access.run {
      try await $0.redrive(chosen, of: channel, for: consumer)
    }
    if let chosen, count < chosen.count {
      throw CommandFailure(
        .absent,
        "\(chosen.count - count) of \(chosen.count) are no dead letters of \(consumer); "
          + "the others were given back", hint: "list them with datavault queue dead-letters")
    }
    try confirm("gave \(count) dead letters back")
  }
}
