internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue receive CHANNEL`.
struct ReceiveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "receive", abstract: "Receive and print a channel's messages, oldest first.",
    discussion: """
      Examples:
        datavault queue receive orders --max 10
        datavault queue receive orders --follow --ndjson

      The command ends when the channel has no more messages. With --follow it waits for new ones. \
      It acknowledges a message after writing it to standard output. It releases a message that it \
      could not write.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Option(
    name: .customLong("max"),
    help: ArgumentHelp("Print at most this many messages.", valueName: "n"))
  var maximumCount: Int?

  @Option(
    help: ArgumentHelp(
      "How long other receivers do not get the messages: 500ms, 30s, 5m, 1h.", valueName: "time"))
  var lease = DurationArgument.standardLease

  @Flag(
    name: .customLong("no-ack"),
    help: "Do not acknowledge. The messages return when the lease ends.")
  var leavesUnacknowledged = false

  @Flag(
    name: .customLong("ndjson"),
    help: "Print one JSON object per line, with the payload in payload or payloadBase64.")
  var isNDJSON = false

  @Flag(
    name: .customLong("follow"),
    help: "Wait for new messages until interrupted.")
  var follows = false

  @OptionGroup var consumer: ConsumerOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    if let maximumCount, maximumCount < 1 {
      throw ValidationError("--max must be at least 1")
    }
    let longest = EngineConfiguration.maximumLeaseDuration
    guard lease.duration > .zero, lease.duration <= longest else {
      throw ValidationError("--lease must be more than 0 and at most 366 days")
    }
  }

  func run() async throws {
    let channel = try Channel(channel)
    let consumer = try consumer.consumer()
    try await runEngine { engine in
      let reception = Reception(
        engine: engine, channel: channel, consumer: consumer,
        format: isNDJSON ? .ndjson : .lines, lease: lease.duration,
        acknowledges: !leavesUnacknowledged, follows: follows)
      try await reception.run(maximumCount: maximumCount)
    }
  }
}

/// One run of `queue receive`.
///
/// It leases batches and prints each with one write. It acknowledges the messages that standard
/// output accepted, and releases the others.
struct Reception {
  private static let maximumBatchCount = 1000

  let engine: MessagingEngine
  let channel: Channel
  let consumer: Consumer
  let format: MessageFormat
  let lease: Duration
  let acknowledges: Bool
  /// Whether it waits for new messages when the channel has no more.
  let follows: Bool

  func run(maximumCount: Int?) async throws {
    var remaining = maximumCount ?? .max
    // Without acknowledgements, leases that end during the command would return the same messages
    // endlessly. A receive that finds none still adds the consumer.
    if !acknowledges && !follows { remaining = min(remaining, max(try await depth(), 1)) }
    while remaining > 0 {
      let deliveries = try await engine.receive(
        from: channel, for: consumer, maximumCount: min(remaining, Self.maximumBatchCount),
        lease: lease, waitingUpTo: follows ? .seconds(86_400) : .zero)
      if deliveries.isEmpty && !follows { return }
      try await print(deliveries)
      remaining -= deliveries.count
    }
  }

  private func depth() async throws -> Int {
    try await engine.statistics(of: channel)?.messageCount ?? 0
  }

  private func print(_ deliveries: [Delivery]) async throws {
    let page = OutputPage(deliveries, format: format, withTokens: !acknowledges)
    let outcome = OutputDescriptor.standardOutput.write(page.bytes)
    let takenCount = page.messageCount(within: outcome.takenByteCount)
    if acknowledges {
      try await settle(deliveries[..<takenCount]) { try await engine.acknowledge($0) }
    }
    try await settle(deliveries[takenCount...]) {
      try await engine.release($0, countsAttempt: false)
    }
    if let errorNumber = outcome.errorNumber {
      throw OutputDescriptor.failure(errorNumber)
    }
    if takenCount < deliveries.count {
      throw CommandFailure(
        .badData,
        "message \(deliveries[takenCount].timetoken) contains a newline: released, not printed",
        hint: "give --ndjson")
    }
  }

  /// Acknowledges or releases deliveries, and warns about leases that have ended.
  ///
  /// If the reader of standard output is slower than the lease, other receivers can get the same
  /// messages. That is a warning, not an error.
  private func settle(
    _ deliveries: ArraySlice<Delivery>, by operation: ([LeaseToken]) async throws -> Void
  ) async throws {
    if deliveries.isEmpty { return }
    do {
      try await operation(deliveries.map(\.token))
    } catch let error as EngineError where error.code == .unknownLease {
      StandardError.warn(
        "\(error.unknownLeases.count) messages took longer to print than the lease of \(lease) "
          + "and can be delivered again")
    }
  }
}

/// The lines of one batch, written with one call, with the offset at which each message ends.
struct OutputPage {
  private(set) var bytes: [UInt8] = []
  private var ends: [Int] = []

  /// Formats deliveries up to the first that the format cannot represent.
  init(_ deliveries: [Delivery], format: MessageFormat, withTokens: Bool) {
    for delivery in deliveries {
      let token = withTokens ? delivery.token : nil
      guard let line = format.line(for: delivery, attempt: delivery.attempt, token: token)
      else { return }
      bytes += line
      ends.append(bytes.count)
    }
  }

  /// How many messages are complete within the first bytes.
  func messageCount(within byteCount: Int) -> Int {
    ends.prefix { $0 <= byteCount }.count
  }
}

extension DurationArgument {
  /// How long a lease lasts, unless an option says otherwise.
  static let standardLease = DurationArgument(.seconds(30), "30s")
}
