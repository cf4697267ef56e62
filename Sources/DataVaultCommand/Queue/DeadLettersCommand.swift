internal import ArgumentParser
internal import Foundation
internal import MessagingQueue

/// `datavault queue dead-letters CHANNEL`.
struct DeadLettersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead-letters",
    abstract: "List the messages that a consumer does not get any more.",
    discussion: "Payloads are not shown: queue redrive gives them back, queue receive prints them.")

  @Argument(help: ArgumentHelp("Whose dead letters.", valueName: "channel"))
  var channel: String

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let letters = try await access.run { engine in
      var letters: [DeadLetter] = []
      while true {
        let page = try await engine.deadLetters(
          of: channel, for: consumer, after: letters.last?.timetoken)
        if page.isEmpty { return letters }
        letters += page
      }
    }
    try report.print(letters.map(DeadLetterReport.init)) { Self.text(letters) }
  }

  private static func text(_ letters: [DeadLetter]) -> String {
    var table = Table(header: ["TIMETOKEN", "BYTES", "ATTEMPTS", "REASON"])
    for letter in letters {
      table.append([
        "\(letter.timetoken)", "\(letter.payload.count)", "\(letter.attemptCount)",
        letter.reason.onOneLine,
      ])
    }
    return table.text
  }
}

/// One entry of `queue dead-letters --json`.
private struct DeadLetterReport: Encodable {
  let timetoken: String
  let consumer: String
  let bytes: Int
  let attempts: Int
  let reason: String
  let died: Date
  let failures: [DeliveryFailure]

  init(_ letter: DeadLetter) {
    timetoken = letter.timetoken.description
    consumer = letter.consumer.name
    bytes = letter.payload.count
    attempts = letter.attemptCount
    reason = letter.reason
    died = Date(timeIntervalSince1970: Double(letter.died) / 1e7)
    failures = letter.failures
  }
}
