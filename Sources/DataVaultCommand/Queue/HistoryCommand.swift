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
