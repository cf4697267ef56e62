internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue history CHANNEL`.
struct HistoryCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Print a channel's messages, oldest first, without receiving them.",
    discussion: """
      Examples:
        datavault queue history orders --limit 10
        datavault queue history orders --follow --ndjson

      The output includes leased messages. It does not include acknowledged messages, unless the \
      channel keeps them. With --follow, the command fails with 66 if messages were deleted before \
      it printed them.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Option(help: ArgumentHelp("Start with the message after this one.", valueName: "timetoken"))
  var after: Timetoken?

  @Option(
    help: ArgumentHelp(
      "Print at most this many messages. Default: 10 with --newest, otherwise all.",
      valueName: "n"))
  var limit: Int?

  @Flag(
    name: .customLong("newest"),
    help: "Print the newest messages instead of the oldest. The newest is last.")
  var isNewest = false

  @Flag(
    name: .customLong("follow"),
    help: "Continue with each new message of any process until interrupted.")
  var follows = false

  @Flag(
    name: .customLong("ndjson"),
    help: "Print one JSON object per line, with the payload in payload or payloadBase64.")
  var isNDJSON = false

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    if let limit, limit < 1 { throw ValidationError("--limit must be at least 1") }
    if follows, limit != nil, !isNewest {
      throw ValidationError("--follow needs --newest if --limit is given")
    }
  }

  func run() async throws {
    let channel = try Channel(channel)
    try await runEngine { engine in
      var reading = HistoryReading(
        engine: engine, channel: channel, format: isNDJSON ? .ndjson : .lines,
        cursor: after)
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

/// One run of `queue history`.
///
/// It reads pages of messages and prints each page with one write.
struct HistoryReading {
  private static let pageCount = 1000

  let engine: MessagingEngine
  let channel: Channel
  let format: MessageFormat
  /// The last printed message, or the message after which to start.
  private(set) var cursor: Timetoken?

  /// Prints at most `limit` messages after the cursor.
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

  /// Prints the newest messages, but only those after the cursor.
  mutating func printNewest(_ limit: Int) async throws {
    // Reading backwards keeps only timetokens, so that memory does not grow with the limit.
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
    guard let begin else { return }
    cursor = max(begin.previous, cursor ?? begin.previous)
    try await print(.max)
  }

  /// Prints the messages after the cursor, or the newest ones, then each new message until the
  /// process ends.
  ///
  /// - Parameter newestCount: how many of the newest messages to print first; nil for all.
  mutating func follow(newestCount: Int?) async throws {
    // One sequence reads everything from the first message: only it detects a missing message.
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
      guard let line = format.line(for: message, availabilityTicks: message.availabilityTicks)
      else {
        failure = .unprintable(message.timetoken)
        break
      }
      bytes += line
      cursor = message.timetoken
    }
    try OutputDescriptor.standardOutput.writeAll(bytes)
    if let failure { throw failure }
  }
}
