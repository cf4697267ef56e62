internal import ArgumentParser
internal import MessagingQueue

/// The command `datavault queue dead-letters CHANNEL`.
struct DeadLettersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead-letters",
    abstract: "List the messages that are no longer delivered to a consumer.",
    discussion: """
      The command does not show payloads. 'queue history' does, and changes nothing. To process the \
      messages, return them with 'queue redrive', then take them with 'queue receive'.
      """)

  @Argument(help: "The channel.") var channel: String

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var report: ReportOptions
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    let letters = try await access.runEngine { engine in
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
          ["\($0.timetoken)", "\($0.payload.count)", "\($0.attemptCount)", $0.reason]
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
    let failures: [Failure]
  }

  struct Failure: Encodable {
    let attempt: Int
    /// RFC 3339.
    let time: String
    let reason: String
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
        failures: letter.failures.map {
          Failure(
            attempt: $0.attempt, time: DateArgument(ticks: $0.ticks).text, reason: $0.reason)
        })
    }
  }
}

/// The command `datavault queue redrive CHANNEL [TIMETOKEN ...]`.
struct RedriveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "redrive", abstract: "Return dead letters to their consumer, ready for delivery.")

  @Argument(help: "The channel.") var channel: String

  @Argument(help: ArgumentHelp("The dead letters to return. Default: all.", valueName: "timetoken"))
  var timetokens: [Timetoken] = []

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    let chosen = timetokens.isEmpty ? nil : timetokens
    let count = try await access.runEngine {
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
