internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue history CHANNEL`.
struct HistoryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Print the log of a channel, oldest first, and change nothing.",
    discussion: """
      Leased messages are in it like all others. What is acknowledged is gone, unless the channel \
      keeps its history. With --follow it ends with 66 when messages left the log before it printed them.
      """)

  @Argument(help: ArgumentHelp("Whose log.", valueName: "channel"))
  var channel: String

  @Option(
    name: .customLong("after"),
    help: ArgumentHelp("Begin with the message after this one.", valueName: "timetoken"))
  var after: TimetokenArgument?

  @Option(
    name: .customLong("limit"),
    help: ArgumentHelp(
      "Print at most so many messages; 10 with --newest, else all.", valueName: "n"))
  var limit: Int?

  @Flag(
    name: .customLong("newest"),
    help: "Print the newest messages instead of the oldest, the newest last.")
  var isNewest = false

  @Flag(
    name: .customLong("follow"),
    help: "Then go on with each message as it is published, until interrupted.")
  var follows = false

  @Flag(
    name: .customLong("ndjson"),
    help: "Print a JSON object a line, with the bytes in payload or payloadBase64.")
  var isNDJSON = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    if let limit, limit < 1 { throw ValidationError("--limit is at least 1") }
    if follows, limit != nil, !isNewest {
      throw ValidationError("--follow goes on from the newest message: give --newest with --limit")
    }
  }

  func run() async throws {
    let channel = try Channel(channel)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    try await access.run { engine in
      var reading = HistoryReading(
        engine: engine, channel: channel, format: isNDJSON ? .ndjson : .lines,
        cursor: after?.timetoken)
      if follows {
        try await reading.follow(newestCount: isNewest ? limit ?? 10 : nil)
      } else if isNewest {
        try await reading.printNewest(limit ?? 10)
      } else {
        try await reading.print(limit ?? .max)
      }
    }
  }
}

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
