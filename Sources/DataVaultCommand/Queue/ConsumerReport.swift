internal import MessagingQueue

/// What a consumer has before it, in the reports of `queue stats` and `queue consumers list`.
struct ConsumerReport: Encodable {
  let consumer: String
  /// Absent where there is no limit.
  let maximumAttempts: Int?
  let ready: Int
  let leased: Int
  let delayed: Int
  let waiting: Int
  let deadLetters: Int
  /// Both absent where nothing is ready, leased or waiting.
  let oldestTimetoken: String?
  let oldestAgeSeconds: Int64?

  init(_ statistics: EngineStatistics.ConsumerStatistics) {
    consumer = statistics.consumer.name
    maximumAttempts = statistics.maximumAttempts
    ready = statistics.readyCount
    leased = statistics.leasedCount
    delayed = statistics.delayedCount
    waiting = statistics.waitingCount
    deadLetters = statistics.deadLetterCount
    oldestTimetoken = statistics.oldest?.description
    oldestAgeSeconds = statistics.oldestAge?.components.seconds
  }

  /// The columns that both tables have.
  static let header = ["READY", "LEASED", "DELAYED", "WAITING", "DEAD", "AGE"]

  var cells: [String] {
    ["\(ready)", "\(leased)", "\(delayed)", "\(waiting)", "\(deadLetters)"]
      + [oldestAgeSeconds.map { "\($0)s" } ?? "-"]
  }
}
