internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue stats`.
struct StatsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats", abstract: "Count the messages of each channel.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    try await access.demandDatabase()
    let engine = try await access.start()
    let statistics = try await engine.statistics()
    try await engine.stop()
    try report.print(QueueReport(statistics)) { Self.text(statistics) }
  }

  private static func text(_ statistics: EngineStatistics) -> String {
    var table = Table(header: ["CHANNEL", "READY", "LEASED", "DELAYED", "OLDEST"])
    for channel in statistics.channels {
      table.append([
        channel.channel.name, "\(channel.readyCount)", "\(channel.leasedCount)",
        "\(channel.delayedCount)", channel.oldest?.description ?? "-",
      ])
    }
    return table.text
  }
}

/// The report of `queue stats` as JSON.
private struct QueueReport: Encodable {
  struct ChannelReport: Encodable {
    let channel: String
    let ready: Int
    let leased: Int
    let delayed: Int
    /// Absent for an empty channel.
    let oldestTimetoken: String?
  }

  let messages: Int
  let commitNumber: Int64
  let channels: [ChannelReport]

  init(_ statistics: EngineStatistics) {
    messages = statistics.messageCount
    commitNumber = statistics.commitNumber
    channels = statistics.channels.map {
      ChannelReport(
        channel: $0.channel.name, ready: $0.readyCount, leased: $0.leasedCount,
        delayed: $0.delayedCount, oldestTimetoken: $0.oldest?.description)
    }
  }
}
