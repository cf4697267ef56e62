internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue channels`.
struct ChannelsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "channels", abstract: "List the channels and what their logs hold.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let channels = try await access.run { try await $0.channels() }
    try report.print(ChannelsReport(channels)) { Self.text(channels) }
  }

  private static func text(_ channels: [ChannelSummary]) -> String {
    var table = Table(header: ["CHANNEL", "MESSAGES", "BYTES", "OLDEST", "NEWEST"])
    for channel in channels {
      table.append([
        channel.channel.name, "\(channel.messageCount)", "\(channel.byteCount)",
        channel.oldest?.description ?? "-",
        channel.newest?.description ?? "-",
      ])
    }
    return table.text
  }
}

/// The report of `queue channels` as JSON.
private struct ChannelsReport: Encodable {
  struct Summary: Encodable {
    let channel: String
    let messages: Int
    let bytes: Int
    /// Both absent for an empty log.
    let oldestTimetoken: String?
    let newestTimetoken: String?
  }

  let channels: [Summary]

  init(_ channels: [ChannelSummary]) {
    self.channels = channels.map {
      Summary(
        channel: $0.channel.name, messages: $0.messageCount, bytes: $0.byteCount,
        oldestTimetoken: $0.oldest?.description, newestTimetoken: $0.newest?.description)
    }
  }
}
