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
    try report.print(QueueReport(statistics)) { Self.text(statistics) }
  }

  private static func text(_ statistics: EngineStatistics) -> String {
    var table = Table(header: ["CHANNEL", "MESSAGES", "CONSUMER"] + ConsumerReport.header)
    for channel in statistics.channels {
      let start = [channel.channel.name, "\(channel.messageCount)"]
      if channel.consumers.isEmpty {
        let age = channel.oldestAge.map { "\($0.components.seconds)s" } ?? "-"
        table.append(start + ["-", "\(channel.messageCount)", "0", "0", "0", "0", age])
      }
      for consumer in channel.consumers.map(ConsumerReport.init) {
        table.append(start + [consumer.consumer] + consumer.cells)
      }
    }
    return table.text
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
