internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue retention`.
struct RetentionCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retention", abstract: "How long a channel keeps its messages.",
    discussion: """
      Without limits a message stays until every consumer has acknowledged it. Limits take the oldest, \
      and none that a consumer still needs, unless the channel discards those.
      """,
    subcommands: [RetentionShowCommand.self, RetentionSetCommand.self],
    defaultSubcommand: RetentionShowCommand.self)
}

/// `datavault queue retention show CHANNEL`.
struct RetentionShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a channel's retention.")

  @Argument(help: ArgumentHelp("Whose retention.", valueName: "channel"))
  var channel: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let retention = try await access.run { try await $0.retention(of: channel) }
    let found = RetentionReport(channel, retention)
    try report.print(found) { found.text }
  }
}

/// The report of `queue retention show`; a limit that is not set is absent.
private struct RetentionReport: Encodable {
  let channel: String
  let ageSeconds: Double?
  let count: Int?
  let bytes: Int?
  let keepsAcknowledged: Bool
  let discardsUnacknowledged: Bool

  init(_ channel: Channel, _ retention: Retention) {
    self.channel = channel.name
    ageSeconds = retention.maximumAge.map { $0 / .seconds(1) }
    count = retention.maximumMessageCount
    bytes = retention.maximumByteCount
    keepsAcknowledged = retention.keepsAcknowledged
    discardsUnacknowledged = retention.discardsUnacknowledged
  }

  var text: String {
    func limit(_ value: (some CustomStringConvertible)?, _ unit: String) -> String {
      value.map { "\($0)\(unit)" } ?? "none"
    }
    return """
      age              \(limit(ageSeconds, " s"))
      count            \(limit(count, " messages"))
      bytes            \(limit(bytes, ""))
      acknowledged     \(keepsAcknowledged ? "kept" : "removed")
      unacknowledged   \(discardsUnacknowledged ? "removed beyond the limits" : "kept")\n
      """
  }
}

/// `datavault queue retention set CHANNEL`.
struct RetentionSetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Change a channel's retention; what is not named stays.",
    discussion: "What is over a limit goes with the next round of an engine that runs.")

  @Argument(help: ArgumentHelp("Whose retention.", valueName: "channel"))
  var channel: String

  @OptionGroup var changes: RetentionChanges
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    try await access.run { engine in
      var retention = try await engine.retention(of: channel)
      changes.apply(to: &retention)
      try await engine.setRetention(retention, of: channel)
    }
    try confirm("set the retention of \(channel.name)")
  }
}

/// What `queue retention set` changes: an option a field.
struct RetentionChanges: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The age from which messages may go: 30s, 12h, 7d; none for any.", valueName: "time"))
  var age: LimitArgument<DurationArgument>?

  @Option(help: ArgumentHelp("The most messages; none for any number.", valueName: "n"))
  var count: LimitArgument<Int>?

  @Option(
    help: ArgumentHelp("The most bytes of payloads and headers; none for any.", valueName: "n"))
  var bytes: LimitArgument<Int>?

  @Flag(
    inversion: .prefixedNo,
    help: "Whether what every consumer has acknowledged stays, up to the limits.")
  var keepAcknowledged: Bool?

  @Flag(
    inversion: .prefixedNo, help: "Whether the limits also take what a consumer still needs.")
  var discardUnacknowledged: Bool?

  func validate() throws {
    guard
      age != nil || count != nil || bytes != nil || keepAcknowledged != nil
        || discardUnacknowledged != nil
    else { throw ValidationError("name at least one thing to change") }
  }

  func apply(to retention: inout Retention) {
    if let age { retention.maximumAge = age.limit?.duration }
    if let count { retention.maximumMessageCount = count.limit }
    if let bytes { retention.maximumByteCount = bytes.limit }
    if let keepAcknowledged { retention.keepsAcknowledged = keepAcknowledged }
    if let discardUnacknowledged { retention.discardsUnacknowledged = discardUnacknowledged }
  }
}

/// A limit on the command line, or `none`.
struct LimitArgument<Value: ExpressibleByArgument & Sendable>: ExpressibleByArgument, Sendable {
  let limit: Value?

  init?(argument: String) {
    if argument == "none" {
      limit = nil
    } else if let value = Value(argument: argument) {
      limit = value
    } else {
      return nil
    }
  }
}

/// `datavault queue purge CHANNEL`.
struct PurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove the messages of a channel, whoever has not received them.")

  @Argument(help: ArgumentHelp("Whose messages.", valueName: "channel"))
  var channel: String

  @Option(
    name: .customLong("before"),
    help: ArgumentHelp("Keep this message and those after it.", valueName: "timetoken"))
  var before: TimetokenArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let count = try await access.run { try await $0.purge(channel, before: before?.timetoken) }
    try confirm("removed \(count) messages")
  }
}

/// `datavault queue compact`.
struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact", abstract: "Give the space of removed messages back to the file system.",
    discussion: "Others publish and receive meanwhile.")

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let byteCount = try await access.run { try await $0.compact() }
    try confirm("gave \(byteCount) bytes back")
  }
}
