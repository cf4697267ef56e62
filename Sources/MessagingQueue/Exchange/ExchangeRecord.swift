/// A line of `docs/message-export.md`.
enum ExchangeRecord: Sendable {
  case export(ExportHeader)
  case channel(ExportedChannel)
  case consumer(ExportedConsumer)
  case message(ExportedMessage)
  case deduplication(ExportedDeduplication)
  /// The export went on here.
  case resumed(ExportMoment)
  case end(ExportEnd)
}

/// What an export is of.
struct ExportHeader: Sendable, Hashable {
  static let version = 1

  /// 32 hexadecimal digits.
  var id: String
  /// The database, likewise.
  var source: String
  var after: Int64?
  /// Nil for all.
  var channels: [String]?
  var moment: ExportMoment
}

/// What a snapshot is of.
struct ExportMoment: Sendable, Hashable {
  /// The number of the database's last commit.
  var commitNumber: Int64 = 0
  /// The greatest timetoken that it ever gave out.
  var highWater: Int64 = 0
}

/// A channel and how long it keeps messages; ages in units of 100 ns.
struct ExportedChannel: Sendable, Hashable {
  var channel: Channel
  var keepsAcknowledged = false
  var discardsUnacknowledged = false
  var longestAge: Int64?
  var mostMessages: Int64?
  var mostBytes: Int64?
  /// 0 for nothing.
  var removedThrough: Int64 = 0
}

struct ExportedConsumer: Sendable, Hashable {
  var channel: Channel
  var consumer: Consumer
  var mostAttempts: Int64?
}

/// A message and what the consumers of its channel have done with it.
struct ExportedMessage: Sendable, Hashable {
  /// What a consumer has before it and has not settled.
  struct Delivery: Sendable, Hashable {
    var consumer: Consumer
    var attemptCount: Int64
    /// Whether the last attempt was never answered.
    var isLeased: Bool
    var due: Int64?
    var failures: [DeliveryFailure]
  }

  struct DeadLetter: Sendable, Hashable {
    var consumer: Consumer
    var attemptCount: Int64
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

struct ExportedDeduplication: Sendable, Hashable {
  var channel: Channel
  var id: String
  var timetoken: Int64
  var until: Int64
}

struct ExportEnd: Sendable, Hashable {
  var messageCount: Int64
  /// Lines before this one.
  var lineCount: Int64
  /// 64 hexadecimal digits; nil in a file that was written by hand.
  var sha256: String?
}
