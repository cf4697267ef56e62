/// A line of an export: `docs/reference/message-export.md`.
enum ExchangeRecord: Sendable {
  case export(ExportHeader)
  case channel(ExportedChannel)
  case consumer(ExportedConsumer)
  case message(ExportedMessage)
  case deduplication(ExportedDeduplication)
  /// The export was resumed here.
  case resumed(ExportMoment)
  case end(ExportEnd)
}

/// The database and the selection of an export.
struct ExportHeader: Sendable, Hashable {
  static let version = 1

  /// 32 hexadecimal digits.
  var id: String
  /// The id of the database, 32 hexadecimal digits.
  var source: String
  /// The export begins after this timetoken; nil for the beginning of the log.
  var after: Int64?
  /// Nil for all.
  var channels: [String]?
  var moment: ExportMoment
}

/// The state of the database in one snapshot.
struct ExportMoment: Sendable, Hashable {
  /// The number of the database's last commit.
  var commitNumber = 0
  /// The greatest timetoken that it ever assigned.
  var highWater: Int64 = 0
}

struct ExportedChannel: Sendable, Hashable {
  var channel: Channel
  var retention = Retention()
  /// The timetoken up to which retention or a purge has removed messages; 0 for none.
  var removedThrough: Int64 = 0
}

struct ExportedConsumer: Sendable, Hashable {
  var channel: Channel
  var consumer: Consumer
  var maximumAttempts: Int?
}

/// A message and what the consumers of its channel have done with it.
///
/// All times are wall time in units of 100 ns since 1970.
struct ExportedMessage: Sendable, Hashable {
  /// A message that a consumer has received or passed and not settled.
  struct Delivery: Sendable, Hashable {
    var consumer: Consumer
    var attemptCount: Int
    /// Whether the last lease has no answer: no acknowledgement, release or rejection.
    var isLeased: Bool
    var due: Int64?
    var failures: [DeliveryFailure]
  }

  struct DeadLetter: Sendable, Hashable {
    var consumer: Consumer
    var attemptCount: Int
    var reason: String
    var died: Int64
    var failures: [DeliveryFailure]
  }

  var timetoken: Int64
  var channel: Channel
  var priority = Priority.normal
  var due: Int64?
  var expires: Int64?
  var orderingKey: String?
  var headers: [String: String] = [:]
  var payload: [UInt8]
  var settledBy: [Consumer] = []
  var deliveries: [Delivery] = []
  var deadLetters: [DeadLetter] = []
}

/// A deduplication id, and the message that was published with it.
struct ExportedDeduplication: Sendable, Hashable {
  var channel: Channel
  var id: String
  var timetoken: Int64
  /// The end of the id's window, in units of 100 ns since 1970.
  var until: Int64
}

/// The last line, by which a reader knows that the export is complete.
struct ExportEnd: Sendable, Hashable {
  var messageCount: Int
  /// Lines before this one.
  var lineCount: Int
  /// The digest of all lines before this one, 64 hexadecimal digits; nil in a file that was written
  /// by hand.
  var sha256: String?
}

extension ExchangeRecord {
  /// The line, newline included.
  var line: [UInt8] {
    var line = JSONObjectWriter()
    switch self {
    case .export(let header):
      line.add("record", "export")
      line.add("version", number: ExportHeader.version)
      line.add("id", header.id)
      line.add("source", header.source)
      line.add("after", time: header.after)
      line.add("channels", texts: header.channels, evenEmpty: true)
      header.moment.write(to: &line)
    case .channel(let channel):
      line.add("record", "channel")
      line.add("channel", channel.channel.name)
      line.add("keepsAcknowledged", flag: channel.retention.keepsAcknowledged)
      line.add("discardsUnacknowledged", flag: channel.retention.discardsUnacknowledged)
      line.add("longestAge", time: channel.retention.maximumAge.map { WallTime.ticks(of: $0) })
      line.add("mostMessages", number: channel.retention.maximumMessageCount)
      line.add("mostBytes", number: channel.retention.maximumByteCount)
      line.add("removedThrough", time: channel.removedThrough > 0 ? channel.removedThrough : nil)
    case .consumer(let consumer):
      line.add("record", "consumer")
      line.add("channel", consumer.channel.name)
      line.add("consumer", consumer.consumer.name)
      line.add("maximumAttempts", number: consumer.maximumAttempts)
    case .message(let message):
      line.add("record", "message")
      message.write(to: &line)
    case .deduplication(let deduplication):
      line.add("record", "deduplication")
      line.add("channel", deduplication.channel.name)
      line.add("id", deduplication.id)
      line.add("timetoken", time: deduplication.timetoken)
      line.add("until", time: deduplication.until)
    case .resumed(let moment):
      line.add("record", "resumed")
      moment.write(to: &line)
    case .end(let end):
      line.add("record", "end")
      line.add("messages", number: end.messageCount)
      line.add("lines", number: end.lineCount)
      line.add("sha256", end.sha256)
    }
    return line.line
  }
}

extension ExportMoment {
  fileprivate func write(to line: inout JSONObjectWriter) {
    line.add("commitNumber", number: commitNumber)
    line.add("highWater", time: highWater)
  }
}

extension ExportedMessage {
  fileprivate func write(to line: inout JSONObjectWriter) {
    line.add("timetoken", time: timetoken)
    line.add("channel", channel.name)
    line.add("priority", number: priority == .normal ? nil : priority.rawValue)
    line.add("due", time: due)
    line.add("expires", time: expires)
    line.add("orderingKey", orderingKey)
    line.add("headers", texts: headers)
    line.add("payload", orBase64: "payloadBase64", payload)
    line.add("settledBy", texts: settledBy.map(\.name))
    line.add("deliveries", objects: deliveries.map(\.object))
    line.add("deadLetters", objects: deadLetters.map(\.object))
  }
}

extension ExportedMessage.Delivery {
  fileprivate var object: JSONObjectWriter {
    var object = JSONObjectWriter()
    object.add("consumer", consumer.name)
    object.add("attempts", number: attemptCount)
    object.add("leased", flag: isLeased)
    object.add("due", time: due)
    object.add("failures", objects: failures.map(\.object))
    return object
  }
}

extension ExportedMessage.DeadLetter {
  fileprivate var object: JSONObjectWriter {
    var object = JSONObjectWriter()
    object.add("consumer", consumer.name)
    object.add("attempts", number: attemptCount)
    object.add("reason", reason)
    object.add("died", time: died)
    object.add("failures", objects: failures.map(\.object))
    return object
  }
}

extension DeliveryFailure {
  fileprivate var object: JSONObjectWriter {
    var object = JSONObjectWriter()
    object.add("attempt", number: attempt)
    object.add("time", time: ticks)
    object.add("reason", reason)
    return object
  }
}
