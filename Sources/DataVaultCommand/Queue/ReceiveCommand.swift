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
    let longest = EngineConfiguration.maximumLeaseDuration
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

/// One run of `queue receive`: leases batches, prints each with one write, and settles it by what
/// standard output took.
struct Reception {
  private static let maximumBatchCount = 1000

  let engine: MessagingEngine
  let channel: Channel
  let consumer: Consumer
  let format: MessageFormat
  let lease: Duration
  let acknowledges: Bool
  /// Whether it waits for more when the channel is drained.
  let follows: Bool

  func run(maximumCount: Int?) async throws {
    var remaining = maximumCount ?? .max
    // Without acknowledging, a lease that ends meanwhile would bring the same messages for ever.
    if !acknowledges && !follows { remaining = min(remaining, try await depth()) }
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
    try await settle(deliveries[takenCount...]) { try await engine.release($0) }
    if let errorNumber = outcome.errorNumber {
      throw OutputDescriptor.failure(errorNumber)
    }
    if takenCount < deliveries.count {
      throw CommandFailure(
        .badData,
        "message \(deliveries[takenCount].timetoken) holds a newline and was released, not printed",
        hint: "give --ndjson")
    }
  }

  /// A reader that is slower than the lease has let others receive the same messages: that is said,
  /// and is no failure.
  private func settle(
    _ deliveries: ArraySlice<Delivery>, by verb: ([LeaseToken]) async throws -> Void
  ) async throws {
    if deliveries.isEmpty { return }
    do {
      try await verb(deliveries.map(\.token))
    } catch let error as EngineError where error.code == .unknownLease {
      StandardError.warn(
        "\(error.unknownLeases.count) messages took longer to print than the lease of \(lease) "
          + "and may be delivered again")
    }
  }
}

/// The lines of one batch, to be written at once, with the place where each message ends.
struct OutputPage {
  private(set) var bytes: [UInt8] = []
  private var ends: [Int] = []

  /// Lays out deliveries up to the first that the format cannot carry.
  init(_ deliveries: [Delivery], format: MessageFormat, withTokens: Bool) {
    for delivery in deliveries {
      guard let line = format.line(for: delivery, withToken: withTokens) else { return }
      bytes += line
      ends.append(bytes.count)
    }
  }

  /// How many messages lie wholly within the first bytes.
  func messageCount(within byteCount: Int) -> Int {
    ends.prefix { $0 <= byteCount }.count
  }
}
