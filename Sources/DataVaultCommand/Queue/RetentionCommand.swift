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
    ageSeconds = retention.longestAge.map { $0 / .seconds(1) }
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
