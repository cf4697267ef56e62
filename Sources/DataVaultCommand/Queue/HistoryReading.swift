internal import MessagingQueue

/// One run of `queue history`: reads pages and prints each with one write.
struct HistoryReading {
  private static let pageCount = 1000

  let engine: MessagingEngine
  let channel: Channel
  let format: MessageFormat
  /// The last message that was printed, or the one to begin behind.
  private(set) var cursor: Timetoken?

  init(
    engine: MessagingEngine, channel: Channel, format: MessageFormat, cursor: Timetoken?
  ) {
    self.engine = engine
    self.channel = channel
    self.format = format
    self.cursor = cursor
  }

  /// Prints from the cursor on.
  mutating func print(_ limit: Int) async throws {
    var remaining = limit
    while remaining > 0 {
      let page = try await engine.history(
        of: channel, from: cursor, maximumCount: min(remaining, Self.pageCount))
      if page.isEmpty { return }
      try print(page)
      remaining -= page.count
    }
  }

  /// Prints the newest messages, as far as they are behind the cursor.
  mutating func printNewest(_ limit: Int) async throws {
    // Only their timetokens are kept on the way back.
    var begin: Timetoken?
    var back: Timetoken?
    var remaining = limit
    while remaining > 0 {
      let page = try await engine.history(
        of: channel, in: .newestFirst, from: back, maximumCount: min(remaining, Self.pageCount))
      guard let last = page.last else { break }
      back = last.timetoken
      remaining -= page.count
      begin = last.timetoken
      if let cursor, last.timetoken <= cursor { return try await print(.max) }
    }
    guard let begin, let before = Timetoken(rawValue: begin.rawValue - 1) else { return }
    cursor = max(before, cursor ?? before)
    try await print(.max)
  }

  /// Prints the log from the cursor on, or from the newest messages, and then what is published, until
  /// the process is ended.
  ///
  /// - Parameter newestCount: how many of the newest; nil for all.
  mutating func follow(newestCount: Int?) async throws {
    // One sequence from the first message on: it alone knows whether one is missing.
    let start = newestCount.map(LogPosition.newest) ?? cursor.map(LogPosition.after) ?? .beginning
    for try await message in try await engine.messages(of: channel, after: start) {
      if let cursor, message.timetoken <= cursor { continue }
      try print([message])
    }
  }

  private mutating func print(_ messages: [LogMessage]) throws {
    var bytes: [UInt8] = []
    var failure: CommandFailure?
    for message in messages {
      guard let line = format.line(for: message) else {
        failure = CommandFailure(
          .badData, "message \(message.timetoken) holds a newline, which a line cannot",
          hint: "give --ndjson")
        break
      }
      bytes += line
      cursor = message.timetoken
    }
    try OutputDescriptor.standardOutput.writeAll(bytes)
    if let failure { throw failure }
  }
}
