internal import MessagingQueue

/// One run of `queue publish`: gathers lines into batches and commits them.
struct Publication {
  private static let maximumBatchCount = 1000
  private static let maximumBatchByteCount = 1 << 20
  /// How long the input may be silent before what has come is committed.
  private static let patience = Duration.milliseconds(5)

  private let engine: MessagingEngine
  private let channel: Channel
  private let reportsCommits: Bool
  private var batch: [Message] = []
  private var batchByteCount = 0
  private var lineCount = 0
  private var batchedLineCount = 0
  private var committedLineCount = 0

  /// Messages that are on the disk.
  private(set) var messageCount = 0

  init(engine: MessagingEngine, channel: Channel, reportsCommits: Bool) {
    self.engine = engine
    self.channel = channel
    self.reportsCommits = reportsCommits
  }

  mutating func publish(
    from descriptor: Int32, format: MessageFormat, maximumPayloadByteCount: Int
  ) async throws {
    var reader = LineReader(
      descriptor: descriptor,
      maximumLineByteCount: format.maximumLineByteCount(payloadByteCount: maximumPayloadByteCount))
    while true {
      switch try reader.next(patience: batch.isEmpty ? nil : Self.patience) {
      case .line(let line):
        lineCount += 1
        let payload: [UInt8]?
        do {
          payload = try format.payload(of: line, number: lineCount)
        } catch {
          try await commit()
          throw error
        }
        if let payload {
          guard payload.count <= maximumPayloadByteCount else {
            try await refuseLine(limit: maximumPayloadByteCount)
          }
          try await append(payload)
        }
      case .tooLong:
        lineCount += 1
        try await refuseLine(limit: maximumPayloadByteCount)
      case .pause:
        try await commit()
      case .end:
        return try await commit()
      }
    }
  }

  private mutating func append(_ payload: [UInt8]) async throws {
    if batchByteCount + payload.count > Self.maximumBatchByteCount { try await commit() }
    batch.append(Message(channel: channel, payload: payload))
    batchByteCount += payload.count
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
