internal import ArgumentParser
internal import CommandInterface
internal import Glibc
internal import MessagingQueue

/// The command `datavault queue publish CHANNEL`.
struct PublishCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "publish", abstract: "Publish each line of standard input as a message.",
    discussion: """
      Examples:
        echo hello | datavault queue publish greetings
        datavault queue publish orders --ndjson < orders.ndjson

      Each line is a message, byte for byte, without its newline. Empty lines, lines that are not \
      UTF-8, and a last line without a newline are messages too. Messages are on the disk after \
      every 1,000 lines, after every 1 MiB, and when the input pauses. The options apply to every \
      message. With --ndjson, a line can override them.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Flag(
    name: .customLong("ndjson"),
    help: "Read one JSON object per line, as 'receive --ndjson' prints it.")
  var isNDJSON = false

  @Flag(
    name: .customLong("json"),
    help: "Report each commit as one line of JSON when it is on the disk.")
  var isJSON = false

  @OptionGroup var message: MessageOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try SecretRules.checkStandardInputIsFree(credentials.sources)
  }

  func run() async throws {
    let prototype = try message.message(to: Channel(channel))
    try prototype.check(EngineConfiguration(), as: "the message")
    let messageCount = try await runOrMakeEngine { engine in
      var run = PublishRun(engine: engine, prototype: prototype, reportsCommits: isJSON)
      do {
        try await run.publish(from: STDIN_FILENO, format: isNDJSON ? .ndjson : .lines)
      } catch {
        throw run.account(for: error)
      }
      return run.messageCount
    }
    if !isJSON { try confirm("published \(messageCount) messages") }
  }
}

/// One run of `queue publish`.
///
/// It collects lines into batches and commits each batch.
struct PublishRun {
  private static let maximumBatchCount = 1000
  private static let maximumBatchByteCount = 1 << 20
  /// How long the input can pause before the batch is committed.
  private static let inputTimeout = Duration.milliseconds(5)

  private let engine: MessagingEngine
  /// The members of each message that its line does not set.
  private let prototype: Message
  private let reportsCommits: Bool
  private var batch: [Message] = []
  private var batchByteCount = 0
  private var lineCount = 0
  private var batchedLineCount = 0
  private var committedLineCount = 0

  /// How many messages are on the disk.
  private(set) var messageCount = 0

  init(engine: MessagingEngine, prototype: Message, reportsCommits: Bool) {
    self.engine = engine
    self.prototype = prototype
    self.reportsCommits = reportsCommits
  }

  mutating func publish(
    from descriptor: Int32, format: MessageFormat
  ) async throws {
    var reader = LineReader(
      descriptor: descriptor,
      maximumLineByteCount: format.maximumLineByteCount(engine.configuration))
    while true {
      switch try reader.next(timeout: batch.isEmpty || isForOne ? nil : Self.inputTimeout) {
      case .line(let line):
        lineCount += 1
        let message: Message?
        do {
          message = try format.message(of: line, like: prototype, number: lineCount)
        } catch {
          try await commit()
          throw error
        }
        if let message { try await append(message) }
      case .tooLong:
        // The line is not read whole, so the engine cannot check it.
        lineCount += 1
        try await commit()
        throw CommandFailure(
          .badData,
          "line \(lineCount) exceeds the limit of "
            + "\(engine.configuration.maximumPayloadByteCount) bytes",
          hint: "split the line, and publish from that line on")
      case .pause:
        try await commit()
      case .end:
        return try await commit()
      }
    }
  }

  /// Whether the command can publish only one message, because an option gives a deduplication id.
  ///
  /// The engine would treat further messages with that id as duplicates.
  private var isForOne: Bool { prototype.deduplicationID != nil }

  private mutating func append(_ message: Message) async throws {
    if isForOne, !batch.isEmpty {
      batch = []
      throw CommandFailure(
        .badData, "line \(lineCount) is a second message under one --deduplication-id",
        hint: "give each line its own deduplicationID with --ndjson")
    }
    do throws(EngineError) {
      try message.check(engine.configuration, as: "line \(lineCount)")
    } catch {
      try await commit()
      throw CommandFailure(.badData, error.message, hint: error.hint)
    }
    let byteCount = message.payload.count
    if batchByteCount + byteCount > Self.maximumBatchByteCount { try await commit() }
    batch.append(message)
    batchByteCount += byteCount
    batchedLineCount = lineCount
    if batch.count == Self.maximumBatchCount { try await commit() }
  }

  private mutating func commit() async throws {
    guard let last = try await engine.publish(batch).last else { return }
    messageCount += batch.count
    committedLineCount = batchedLineCount
    batch.removeAll(keepingCapacity: true)
    batchByteCount = 0
    if reportsCommits {
      var report = JSONObjectWriter()
      report.add("published", number: messageCount)
      report.add("lastTimetoken", time: last.rawValue)
      try OutputDescriptor.standardOutput.writeAll(report.line)
    }
  }

  /// The failure, extended by which lines are published: the sender can continue after them.
  func account(for error: any Error) -> CommandFailure {
    let failure = CommandFailure(translating: error)
    // A commit with an unknown outcome might be on the disk.
    let isUnknown = (error as? EngineError)?.code == .outcomeUnknown
    let others = isUnknown ? "of the lines after that it is unknown" : "no other is"
    let account =
      switch committedLineCount {
      case 0: isUnknown ? "whether lines are published is unknown" : "nothing was published"
      case 1: "line 1 is published, \(others)"
      default: "lines 1 to \(committedLineCount) are published, \(others)"
      }
    return CommandFailure(failure.status, "\(failure.message); \(account)", hint: failure.hint)
  }
}
