internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue show CHANNEL TIMETOKEN`.
struct ShowCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show one message, and its state for each consumer.",
    discussion: """
      The command does not print the payload: 'queue history' and 'queue peek' do. It fails with \
      66 if the log does not have the message.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String
  @Argument(help: "The message.") var timetoken: Timetoken
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let state = try await runEngine { try await $0.state(of: timetoken, in: channel) }
    guard let state else { throw CommandFailure.noMessage(timetoken, in: channel) }
    let findings = MessageReport(state)
    try report.print(findings) { findings.text }
  }
}

/// The command `datavault queue peek CHANNEL`.
struct PeekCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "peek", abstract: "Print the messages that 'receive' would print next.",
    discussion: """
      The messages stay ready, and no attempt is counted. 'queue history' prints all messages of a \
      channel.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Option(
    name: .customLong("max"), help: ArgumentHelp("Print at most this many.", valueName: "n"))
  var maximumCount = 1

  @Flag(
    name: .customLong("ndjson"),
    help: "Print one JSON object per line, with the payload in payload or payloadBase64.")
  var isNDJSON = false

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard (1...1000).contains(maximumCount) else {
      throw ValidationError("--max must be from 1 to 1000")
    }
  }

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    let format: MessageFormat = isNDJSON ? .ndjson : .lines
    let deliveries = try await runEngine {
      try await $0.peek(at: channel, for: consumer, maximumCount: maximumCount)
    }
    for delivery in deliveries {
      guard let line = format.line(for: delivery, attempt: delivery.attempt) else {
        throw CommandFailure.unprintable(delivery.timetoken)
      }
      try OutputDescriptor.standardOutput.writeAll(line)
    }
  }
}

/// The command `datavault queue cancel CHANNEL TIMETOKEN ...`.
struct CancelCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Delete messages that no consumer has leased.",
    discussion: """
      The messages are ready, delayed, or wait for their ordering key. The command fails with 66 if \
      some are gone, leased or dead letters; the others are deleted. On a home of a cluster, leased \
      messages are deleted too.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String
  @Argument(help: ArgumentHelp("The messages to delete.", valueName: "timetoken"))
  var timetokens: [Timetoken]
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let noun = timetokens.count == 1 ? "message" : "messages"
    try confirmation.require(
      "delete \(timetokens.count) \(noun) of channel '\(channel.name)'")
    let kept = try await runEngine(changes: true) { try await $0.cancel(timetokens, of: channel) }
    guard let first = kept.first else {
      let count = timetokens.count
      return try confirm("deleted \(count) message\(count == 1 ? "" : "s")")
    }
    throw CommandFailure(
      .notFound,
      "\(kept.count) of \(timetokens.count) messages are gone, leased or dead letters, such as \(first); "
        + "the others were deleted",
      hint: "to see why, run datavault queue show \(channel.name) \(first)")
  }
}

extension CommandFailure {
  fileprivate static func noMessage(_ timetoken: Timetoken, in channel: Channel) -> CommandFailure {
    CommandFailure(
      .notFound, "channel '\(channel.name)' has no message \(timetoken)",
      hint: "to list its messages, run datavault queue history \(channel.name) --ndjson")
  }

  /// - Parameter timetoken: of a message whose payload has a newline.
  static func unprintable(_ timetoken: Timetoken) -> CommandFailure {
    CommandFailure(
      .badData, "message \(timetoken) contains a newline and cannot be printed as a line",
      hint: "give --ndjson")
  }
}

/// The report of `queue show`.
private struct MessageReport: Encodable {
  struct State: Encodable {
    let consumer: String
    /// `ready`, `delayed`, `waiting`, `leased`, `expired`, `deadLetter` or `acknowledged`.
    let state: String
    /// The rest of a lease or delay; absent in other states.
    let seconds: Int?
    /// Why it is a dead letter; absent in other states.
    let reason: String?
    let attempts: Int
    /// Absent if there is no limit.
    let maximumAttempts: Int?
    let failures: [FailureReport]
  }

  let timetoken: String
  let channel: String
  let published: String
  let bytes: Int
  let headers: [String: String]
  let priority: Int
  let orderingKey: String?
  /// Absent if the message was published without a delay.
  let available: String?
  /// Absent if the message has no time to live.
  let expires: String?
  let consumers: [State]

  init(_ state: MessageState) {
    let message = state.message
    timetoken = message.timetoken.description
    channel = message.channel.name
    published = DateArgument(ticks: message.timetoken.rawValue).text
    bytes = message.payload.count
    headers = message.headers
    priority = message.priority.rawValue
    orderingKey = message.orderingKey
    available = message.availabilityTicks.map { DateArgument(ticks: $0).text }
    expires = message.expirationTicks.map { DateArgument(ticks: $0).text }
    consumers = state.consumers.map { consumer in
      let (name, rest, reason) = Self.words(consumer.delivery)
      return State(
        consumer: consumer.consumer.name, state: name,
        seconds: rest.map { Int(($0 / .seconds(1)).rounded(.up)) }, reason: reason,
        attempts: consumer.attemptCount, maximumAttempts: consumer.maximumAttempts,
        failures: consumer.failures.map(FailureReport.init))
    }
  }

  private static func words(
    _ delivery: DeliveryState
  ) -> (name: String, rest: Duration?, reason: String?) {
    switch delivery {
    case .ready: ("ready", nil, nil)
    case .delayed(let rest): ("delayed", rest, nil)
    case .waiting: ("waiting", nil, nil)
    case .leased(let rest): ("leased", rest, nil)
    case .expired: ("expired", nil, nil)
    case .deadLetter(let reason): ("deadLetter", nil, reason)
    case .acknowledged: ("acknowledged", nil, nil)
    }
  }

  var text: String {
    var lines = [
      "published  \(published)", "bytes      \(OutputDescriptor.size(byteCount: bytes))",
      "priority   \(priority)",
    ]
    if let orderingKey { lines.append("key        \(orderingKey.onOneLine)") }
    if let available { lines.append("available  \(available)") }
    if let expires { lines.append("expires    \(expires)") }
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
      lines.append("header     \(name.onOneLine): \(value.onOneLine)")
    }
    for consumer in consumers {
      let limit = consumer.maximumAttempts.map { " of \($0)" } ?? ""
      let rest =
        consumer.seconds.map { " for \(OutputDescriptor.age(seconds: Int64($0), unit: " s"))" }
        ?? ""
      let reason = consumer.reason.map { ": \($0.onOneLine)" } ?? ""
      lines.append(
        "consumer   \(consumer.consumer.onOneLine): \(consumer.state)\(rest)\(reason), "
          + "attempt \(consumer.attempts)\(limit)")
      lines += consumer.failures.map {
        "failure    attempt \($0.attempt), \($0.time): \($0.reason.onOneLine)"
      }
    }
    return lines.map { "\($0)\n" }.joined()
  }
}

/// A failed attempt in the reports of `queue show` and `queue dead-letters list`.
struct FailureReport: Encodable {
  let attempt: Int
  /// RFC 3339.
  let time: String
  let reason: String

  init(_ failure: DeliveryFailure) {
    attempt = failure.attempt
    time = DateArgument(ticks: failure.ticks).text
    reason = failure.reason
  }
}
