internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue channels`.
struct ChannelsCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "channels", abstract: "List channels with their message counts and sizes.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channels = try await runEngine { try await $0.channels() }
    try report.print(ChannelsReport(channels)) {
      table(
        ["CHANNEL", "MESSAGES", "BYTES", "OLDEST", "NEWEST"],
        channels.map {
          [
            $0.channel.name, "\($0.messageCount)", OutputDescriptor.size(byteCount: $0.byteCount),
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
struct StatsCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "stats",
    abstract: "Count the messages of each channel and consumer, and show the queue's size.")

  @Flag(
    name: .customLong("watch"),
    help: "Show the counts again and again, with their changes per second, until interrupted.")
  var watches = false

  @Option(
    help: ArgumentHelp(
      "The time between two counts of --watch, at least 100ms.", valueName: "time"))
  var interval = DurationArgument(.seconds(2), "2s")

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    if watches, report.isJSON { throw ValidationError("give either --watch or --json") }
    guard interval.duration >= .milliseconds(100) else {
      throw ValidationError("--interval must be at least 100ms")
    }
  }

  func run() async throws {
    guard watches else {
      let (statistics, size) = try await runEngine { engine in
        let statistics = try await engine.statistics()
        let size = try await engine.databaseSize()
        return (statistics, size)
      }
      return try report.print(QueueReport(statistics, size)) {
        Self.table(statistics) + "\n" + SizeReport(size).text
      }
    }
    guard OutputDescriptor.standardOutput.isTerminal else {
      throw CommandFailure(
        .usage, "--watch needs a terminal", hint: "run datavault queue stats --json repeatedly")
    }
    try await runEngine { engine in
      var last: (statistics: EngineStatistics, time: ContinuousClock.Instant)?
      while true {
        let (statistics, time) = (try await engine.statistics(), ContinuousClock.now)
        let rates = last.map { Self.rates(from: $0.statistics, to: statistics, in: time - $0.time) }
        // A terminal that cannot erase gets one table below the other.
        let start = Terminal.movesCursor ? Terminal.eraseScreen : last == nil ? "" : "\n"
        let size = SizeReport(try await engine.databaseSize())
        let screen = "\(start)\(Self.table(statistics))\n\(size.text)\(rates ?? "")"
        try OutputDescriptor.standardOutput.writeAll(Array(screen.utf8))
        last = (statistics, time)
        try await Task.sleep(for: interval.duration)
      }
    }
  }

  private static func table(_ statistics: EngineStatistics) -> String {
    CommandInterface.table(
      ["CHANNEL", "MESSAGES", "CONSUMER"] + ConsumerReport.header,
      statistics.channels.flatMap(rows))
  }

  private static func rates(
    from old: EngineStatistics, to new: EngineStatistics, in time: Duration
  ) -> String {
    func rate(_ count: Int64) -> String {
      let rate = (Double(count) / (time / .seconds(1))).rounded()
      return rate > 0 ? "+\(Int(rate))" : "\(Int(rate))"
    }
    return "\n\(rate(Int64(new.messageCount - old.messageCount))) messages/s, "
      + "\(rate(new.commitNumber - old.commitNumber)) commits/s\n"
  }

  /// The rows of a channel: one for each consumer, or one without a consumer.
  private static func rows(_ channel: EngineStatistics.ChannelStatistics) -> [[String]] {
    let start = [channel.channel.name, "\(channel.messageCount)"]
    if channel.consumers.isEmpty {
      let age =
        channel.oldestAge.map { OutputDescriptor.age(seconds: $0.components.seconds) } ?? "-"
      return [start + ["-", "\(channel.messageCount)", "0", "0", "0", "0", age]]
    }
    return channel.consumers.map(ConsumerReport.init).map { start + [$0.consumer] + $0.cells }
  }
}

/// The JSON report of `queue stats`.
private struct QueueReport: Encodable {
  let messages: Int
  let commitNumber: Int64
  let databaseBytes: Int
  let maximumDatabaseBytes: Int?
  let freeDiskBytes: Int
  let channels: [ChannelReport]

  init(_ statistics: EngineStatistics, _ size: DatabaseSize) {
    databaseBytes = size.byteCount
    maximumDatabaseBytes = size.maximumByteCount
    freeDiskBytes = size.freeDiskByteCount
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
