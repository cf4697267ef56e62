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
    let statistics = try await access.run { try await $0.statistics() }
    try report.print(QueueReport(statistics)) { Self.text(statistics) }
  }

  private static func text(_ statistics: EngineStatistics) -> String {
    var table = Table(
      header: ["CHANNEL", "MESSAGES", "CONSUMER", "READY", "LEASED", "DELAYED", "WAITING", "DEAD"])
    for channel in statistics.channels {
      let start = [channel.channel.name, "\(channel.messageCount)"]
      if channel.consumers.isEmpty {
        table.append(start + ["-", "\(channel.messageCount)", "0", "0", "0", "0"])
      }
      for consumer in channel.consumers {
        table.append(
          start + [
            consumer.consumer.name, "\(consumer.readyCount)", "\(consumer.leasedCount)",
            "\(consumer.delayedCount)", "\(consumer.waitingCount)", "\(consumer.deadLetterCount)",
          ])
      }
    }
    return table.text
  }
}

/// The report of `queue stats` as JSON.
private struct QueueReport: Encodable {
  struct ChannelReport: Encodable {
    let channel: String
    let messages: Int
    let bytes: Int
    /// Absent for an empty channel.
    let oldestTimetoken: String?
    let consumers: [ConsumerReport]
  }

  struct ConsumerReport: Encodable {
    let consumer: String
    let ready: Int
    let leased: Int
    let delayed: Int
    let waiting: Int
    let deadLetters: Int
  }

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
        consumers: channel.consumers.map {
          ConsumerReport(
            consumer: $0.consumer.name, ready: $0.readyCount, leased: $0.leasedCount,
            delayed: $0.delayedCount, waiting: $0.waitingCount, deadLetters: $0.deadLetterCount)
        })
    }
  }
}
