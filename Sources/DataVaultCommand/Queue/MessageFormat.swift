internal import CommandInterface
internal import MessagingQueue

/// The format of messages in a stream: each message is a line, or a JSON object on a line.
enum MessageFormat {
  case lines
  case ndjson

  /// The maximum length of a message's line, in bytes.
  ///
  /// JSON writes a byte with at most six. The names beside payload and headers have at most 255
  /// bytes.
  func maximumLineByteCount(_ configuration: EngineConfiguration) -> Int {
    switch self {
    case .lines: configuration.maximumPayloadByteCount
    case .ndjson:
      6 * (configuration.maximumPayloadByteCount + configuration.maximumHeaderByteCount) + 16_384
    }
  }

  /// Reads the message of a line; nil for a line without a message.
  ///
  /// Members that the line does not have come from `prototype`.
  func message(
    of line: [UInt8], like prototype: Message, number: Int
  ) throws(CommandFailure) -> Message? {
    switch self {
    case .lines:
      var message = prototype
      message.payload = line
      return message
    case .ndjson:
      if JSONLine.isBlank(line) { return nil }
      return try NDJSONMessage(line, number: number).message(like: prototype)
    }
  }

  /// The line for a message, newline included; nil if the format cannot represent its payload.
  ///
  /// Only JSON has the attempt, the token and the date from which the message is available.
  func line(
    for message: some StoredMessage, attempt: Int? = nil, token: LeaseToken? = nil,
    availabilityTicks: Int64? = nil
  ) -> [UInt8]? {
    switch self {
    case .lines: message.payload.contains(0x0A) ? nil : message.payload + [0x0A]
    case .ndjson:
      message.jsonLine(attempt: attempt, token: token, availabilityTicks: availabilityTicks)
    }
  }
}

/// What a delivery and a message of the log have in common.
protocol StoredMessage {
  var timetoken: Timetoken { get }
  var channel: Channel { get }
  var payload: [UInt8] { get }
  var headers: [String: String] { get }
  var priority: Priority { get }
  var orderingKey: String? { get }
  /// In units of 100 ns since 1970.
  var expirationTicks: Int64? { get }
}

extension Delivery: StoredMessage {}

extension LogMessage: StoredMessage {}
