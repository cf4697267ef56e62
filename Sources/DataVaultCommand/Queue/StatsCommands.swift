internal import ArgumentParser
internal import MessagingQueue

/// The command `datavault queue channels`.
struct ChannelsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "channels", abstract: "List channels with their message counts and sizes.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let channels = try await access.runEngine { try await $0.channels() }
    try report.print(ChannelsReport(channels)) {
      table(
        ["CHANNEL", "MESSAGES", "BYTES", "OLDEST", "NEWEST"],
        channels.map {
          [
            $0.channel.name, "\($0.messageCount)", "\($0.byteCount)",
            $0.oldest?.description ?? "-", $0.newest?.description ?? "-",
          ]
        })
    }
  }
}

/// The JSON report of `queue channels`.
private struct ChannelsReport: Encodable {
  let channels: [ChannelReport]

  init(_ channels: [ChannelSummary]) {
    self.channels = channels.map {
      ChannelReport(
        channel: $0.channel.name, messages: $0.messageCount, bytes: $0.byteCount,
        oldestTimetoken: $0.oldest?.description, newestTimetoken: $0.newest?.description)
    }
  }
}

/// A channel in both reports; the dates are absent for an empty log.
private struct ChannelReport: Encodable {
  let channel: String
  let messages: Int
  let bytes: Int
  let oldestTimetoken: String?
  var newestTimetoken: String?
  var oldestAgeSeconds: Int64?
  var consumers: [ConsumerReport]?
}

/// The command `datavault queue stats`.
struct StatsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats", abstract: "Count the messages of each channel and consumer.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let statistics = try await access.runEngine { try await $0.statistics() }
    try report.print(QueueReport(statistics)) {
      table(
        ["CHANNEL", "MESSAGES", "CONSUMER"] + ConsumerReport.header,
        statistics.channels.flatMap(Self.rows))
    }
  }

  /// The rows of a channel: one for each consumer, or one without a consumer.
  private static func rows(_ channel: EngineStatistics.ChannelStatistics) -> [[String]] {
    let start = [channel.channel.name, "\(channel.messageCount)"]
    if channel.consumers.isEmpty {
      let age = channel.oldestAge.map { "\($0.components.seconds)s" } ?? "-"
      return [start + ["-", "\(channel.messageCount)", "0", "0", "0", "0", age]]
    }
    return channel.consumers.map(ConsumerReport.init).map { start + [$0.consumer] + $0.cells }
  }
}

/// The JSON report of `queue stats`.
private struct QueueReport: Encodable {
  let messages: Int
  let commitNumber: Int64
  let channels: [ChannelReport]

  init(_ statistics: EngineStatistics) {
    messages = statistics.messageCount
    commitNumber = statistics.commitNumber
    channels = statistics.channels.map { channel in
      ChannelReport(
        channel: channel.channel.name, messages: channel.messageCount, bytes: channel.byteCount,
        oldestTimetoken: channel.oldest?.description,
        oldestAgeSeconds: channel.oldestAge?.components.seconds,
        consumers: channel.consumers.map(ConsumerReport.init))
    }
  }
}
