internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue retention`.
struct RetentionCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retention", abstract: "Show or change how long a channel keeps messages.",
    discussion: """
      Example:
        datavault queue retention set orders --age 7d --count 100000

      Without limits, a message stays until every consumer has acknowledged it. Limits delete the \
      oldest messages. They keep messages that a consumer still needs, unless the channel discards \
      unacknowledged messages.
      """,
    subcommands: [RetentionShowCommand.self, RetentionSetCommand.self],
    defaultSubcommand: RetentionShowCommand.self)
}

/// The command `datavault queue retention show CHANNEL`.
struct RetentionShowCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a channel's retention.")

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let retention = try await runEngine { try await $0.retention(of: channel) }
    let found = RetentionReport(channel, retention)
    try report.print(found) { found.text }
  }
}

/// The report of `queue retention show`.
///
/// A limit that is not set is absent.
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
    // For a terminal, in whole seconds; a limit of less than a second keeps its fraction.
    let isForPeople = OutputDescriptor.standardOutput.isTerminal && ageSeconds ?? 0 >= 1
    let age = ageSeconds.map {
      isForPeople ? PeopleText.age(seconds: Int64($0)) : "\($0) s"
    }
    return """
      age              \(age ?? "none")
      count            \(count.map { "\($0) messages" } ?? "none")
      bytes            \(bytes.map { OutputDescriptor.size(byteCount: $0) } ?? "none")
      acknowledged     \(keepsAcknowledged ? "kept" : "removed")
      unacknowledged   \(discardsUnacknowledged ? "removed beyond the limits" : "kept")\n
      """
  }
}

/// The command `datavault queue retention set CHANNEL`.
struct RetentionSetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Change a channel's retention. Settings that no option names stay as they are.",
    discussion: """
      A running engine applies the limits in its next maintenance round. Commands that end \
      immediately do not apply them.
      """)

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @OptionGroup var changes: RetentionChanges
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    try await runEngine(changes: true) { engine in
      var retention = try await engine.retention(of: channel)
      changes.apply(to: &retention)
      try await engine.setRetention(retention, of: channel)
    }
    try confirm("changed the retention of channel '\(channel.name)'")
  }
}

/// The options of `queue retention set`, one for each setting.
struct RetentionChanges: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Delete messages older than this: 30s, 12h, 7d; 'none' for no limit.", valueName: "time"))
  var age: LimitArgument<DurationArgument>?

  @Option(
    help: ArgumentHelp("The maximum number of messages; 'none' for no limit.", valueName: "n"))
  var count: LimitArgument<Int>?

  @Option(
    help: ArgumentHelp(
      "The maximum bytes of payloads and headers; 'none' for no limit.", valueName: "n"))
  var bytes: LimitArgument<Int>?

  @Flag(
    inversion: .prefixedNo,
    help: "Whether to keep messages that every consumer has acknowledged, up to the limits.")
  var keepAcknowledged: Bool?

  @Flag(
    inversion: .prefixedNo,
    help: "Whether the limits also delete messages that a consumer still needs.")
  var discardUnacknowledged: Bool?

  func validate() throws {
    guard
      age != nil || count != nil || bytes != nil || keepAcknowledged != nil
        || discardUnacknowledged != nil
    else { throw ValidationError("give at least one setting to change") }
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
    limit = Value(argument: argument)
    if limit == nil && argument != "none" { return nil }
  }
}
