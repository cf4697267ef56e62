internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue receive CHANNEL`.
struct ReceiveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "receive", abstract: "Print the messages of a channel, oldest first.",
    discussion: """
      Ends when the channel is drained, or goes on with --follow. A message is acknowledged once standard output has taken \
      it; what could not be printed is released.
      """)

  @Argument(help: ArgumentHelp("Where to receive from.", valueName: "channel"))
  var channel: String

  @Option(
    name: .customLong("max"),
    help: ArgumentHelp("Print at most so many messages.", valueName: "n"))
  var maximumCount: Int?

  @Option(
    name: .customLong("lease"),
    help: ArgumentHelp(
      "How long messages are kept from other receivers: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var lease = DurationArgument.standardLease

  @Flag(
    name: .customLong("no-ack"),
    help: "Acknowledge nothing: the messages return when the lease ends.")
  var leavesUnacknowledged = false

  @Flag(
    name: .customLong("ndjson"),
    help: "Print a JSON object a line, with the bytes in payload or payloadBase64.")
  var isNDJSON = false

  @Flag(
    name: .customLong("follow"),
    help: "Wait for more messages when there are none, until interrupted.")
  var follows = false

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    if let maximumCount, maximumCount < 1 {
      throw ValidationError("--max is at least 1")
    }
    let longest = EngineConfiguration.longestHold
    guard lease.duration > .zero, lease.duration <= longest else {
      throw ValidationError("--lease is more than nothing and at most 366 days")
    }
  }

  func run() async throws {
    let channel = try Channel(channel)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let consumer = try consumer.consumer()
    try await access.run { engine in
      let reception = Reception(
        engine: engine, channel: channel, consumer: consumer,
        format: isNDJSON ? .ndjson : .lines, lease: lease.duration,
        acknowledges: !leavesUnacknowledged, follows: follows)
      try await reception.run(maximumCount: maximumCount)
    }
  }
}
