internal import ArgumentParser
internal import Glibc
internal import MessagingQueue

/// `datavault queue publish CHANNEL`.
struct PublishCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "publish", abstract: "Publish the lines of standard input.",
    discussion: """
      Each line is a message, byte for byte, without its newline; empty lines too. Messages are on \
      the disk after each 1,000 lines, each 1 MiB, and whenever the input pauses. What the options say \
      holds for each message; a line of JSON may say otherwise.
      """)

  @Argument(help: ArgumentHelp("Where to publish.", valueName: "channel"))
  var channel: String

  @Flag(
    name: .customLong("ndjson"),
    help: "Read a JSON object a line, with the message as receive prints it.")
  var isNDJSON = false

  @Flag(
    name: .customLong("json"),
    help: "Report each commit, once it is on the disk, as one line of JSON.")
  var isJSON = false

  @OptionGroup var message: MessageOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try DescriptorRules.checkStandardInputIsFree(credentials.descriptors)
  }

  func run() async throws {
    let prototype = try message.message(to: Channel(channel))
    try prototype.check(EngineConfiguration(), as: "the message")
    let engine = try await EngineAccess(home: try home.home(), credentials: credentials).start()
    var publication = Publication(
      engine: engine, prototype: prototype, reportsCommits: isJSON)
    do {
      try await publication.publish(
        from: STDIN_FILENO, format: isNDJSON ? .ndjson : .lines)
    } catch {
      try? await engine.stop()
      throw publication.account(for: error)
    }
    try await engine.stop()
    if !isJSON { try confirm("published \(publication.messageCount) messages") }
  }
}

/// One run of `queue publish`: gathers lines into batches and commits them.
struct Publication {
  private static let maximumBatchCount = 1000
  private static let maximumBatchByteCount = 1 << 20
  /// How long the input may be silent before what has come is committed.
  private static let patience = Duration.milliseconds(5)

  private let engine: MessagingEngine
  /// What a message has that its line does not speak of.
  private let prototype: Message
  private let reportsCommits: Bool
  private var batch: [Message] = []
  private var batchByteCount = 0
  private var lineCount = 0
  private var batchedLineCount = 0
  private var committedLineCount = 0

  /// Messages that are on the disk.
  private(set) var messageCount = 0

  init(engine: MessagingEngine, prototype: Message, reportsCommits: Bool) {
    self.engine = engine
    self.prototype = prototype
    self.reportsCommits = reportsCommits
  }

  mutating func publish(
    from descriptor: Int32, format: MessageFormat
  ) async throws {
    let limit = engine.configuration.maximumPayloadByteCount
    var reader = LineReader(
      descriptor: descriptor,
      maximumLineByteCount: format.maximumLineByteCount(engine.configuration))
    while true {
      switch try reader.next(patience: batch.isEmpty || isForOne ? nil : Self.patience) {
      case .line(let line):
        lineCount += 1
        let message: Message?
        do {
          message = try format.message(of: line, like: prototype, number: lineCount)
        } catch {
          try await commit()
          throw error
        }
        if let message {
          guard message.payload.count <= limit else { try await refuseLine(limit: limit) }
          try await append(message)
        }
      case .tooLong:
        lineCount += 1
        try await refuseLine(limit: limit)
      case .pause:
        try await commit()
      case .end:
        return try await commit()
      }
    }
  }

  /// A deduplication id of the command line is for one message: with more of them all but the first
  /// would be taken for repetitions of it.
  private var isForOne: Bool { prototype.deduplicationID != nil }

  private mutating func append(_ message: Message) async throws {
    if isForOne, !batch.isEmpty {
      batch = []
      throw CommandFailure(
        .badData, "line \(lineCount) is a second message under one --deduplication-id",
        hint: "with --ndjson each line can have its own deduplicationID")
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

  /// The lines before it are good, and published.
  private mutating func refuseLine(limit: Int) async throws -> Never {
    try await commit()
    throw CommandFailure(
      .badData, "line \(lineCount) is over the limit of \(limit) bytes",
      hint: "split it, and go on from there")
  }

  private mutating func commit() async throws {
    guard let last = try await engine.publish(batch).last else { return }
    messageCount += batch.count
    committedLineCount = batchedLineCount
    batch.removeAll(keepingCapacity: true)
    batchByteCount = 0
    if reportsCommits {
      let report = #"{"published":\#(messageCount),"lastTimetoken":"\#(last)"}"# + "\n"
      try OutputDescriptor.standardOutput.writeAll(Array(report.utf8))
    }
  }

  /// The failure, with what was published before it: the sender goes on from there.
  func account(for error: any Error) -> CommandFailure {
    let failure = CommandFailure(translating: error)
    // A commit whose outcome is unknown may be on the disk all the same.
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
