internal import ArgumentParser
internal import Foundation
internal import MessagingQueue

/// What `queue publish` gives to each message, unless a line of JSON says otherwise.
struct MessageOptions: ParsableArguments {
  @Option(
    name: .customLong("header"),
    help: ArgumentHelp(
      "A header; as often as there are headers. The name ends at the first =.",
      valueName: "name=value"))
  var headers: [HeaderArgument] = []

  @Option(
    name: .customLong("key"),
    help: ArgumentHelp(
      "The ordering key: a consumer gets its messages one at a time, in their order.",
      valueName: "key"))
  var orderingKey: String?

  @Option(
    name: .customLong("priority"),
    help: ArgumentHelp("0 to 9, the most urgent; 4 is normal.", valueName: "n"))
  var priority: Int?

  @Option(
    name: .customLong("delay"),
    help: ArgumentHelp(
      "Receivers get it when this time is over: 500ms, 30s, 5m, 1h, 7d.", valueName: "time"))
  var delay: DurationArgument?

  @Option(
    name: .customLong("at"),
    help: ArgumentHelp(
      "Receivers get it from this moment on: 2026-11-21T08:15:00Z.", valueName: "date"))
  var date: DateArgument?

  @Option(
    name: .customLong("time-to-live"),
    help: ArgumentHelp("No receiver gets it after this time.", valueName: "time"))
  var timeToLive: DurationArgument?

  @Option(
    name: .customLong("deduplication-id"),
    help: ArgumentHelp(
      "Publish nothing if this id was published within the hour; for one message.",
      valueName: "id"))
  var deduplicationID: String?

  func validate() throws {
    guard Set(headers.map { Array($0.name.utf8) }).count == headers.count else {
      throw ValidationError("a --header is given twice")
    }
    if delay != nil, date != nil { throw ValidationError("give --delay or --at, not both") }
  }

  /// A message of them, without a payload.
  func message(to channel: Channel) throws -> Message {
    var message = Message(
      channel: channel, payload: [],
      headers: Dictionary(uniqueKeysWithValues: headers.map { ($0.name, $0.value) }))
    message.orderingKey = orderingKey
    if let priority { message.priority = try Priority(priority) }
    if let delay { message.availability = .after(delay.duration) }
    if let date { message.availability = .at(ticks: date.ticks) }
    message.timeToLive = timeToLive?.duration
    message.deduplicationID = deduplicationID
    return message
  }
}

/// A header on the command line.
struct HeaderArgument: ExpressibleByArgument {
  let name: String
  let value: String

  init?(argument: String) {
    guard let end = argument.firstIndex(of: "="), end > argument.startIndex else { return nil }
    name = String(argument[..<end])
    value = String(argument[end...].dropFirst())
  }
}

/// How messages lie in a stream: a line each, or a JSON object a line.
enum MessageFormat {
  case lines
  case ndjson

  /// The most bytes that a line with a message can have: JSON writes a byte with at most six, and
  /// beside payload and headers there are names of at most 255 bytes.
  func maximumLineByteCount(_ configuration: EngineConfiguration) -> Int {
    switch self {
    case .lines: configuration.maximumPayloadByteCount
    case .ndjson:
      6 * (configuration.maximumPayloadByteCount + configuration.maximumHeaderByteCount) + 16_384
    }
  }

  /// The message in a line, which has what it does not say from `prototype`; nil for a line that holds
  /// none.
  func message(
    of line: [UInt8], like prototype: Message, number: Int
  ) throws(CommandFailure) -> Message? {
    switch self {
    case .lines:
      var message = prototype
      message.payload = line
      return message
    case .ndjson:
      return try NDJSONMessage.message(of: line, like: prototype, number: number)
    }
  }

  /// The line for a delivery, newline included; nil if the format cannot carry its payload.
  func line(for delivery: Delivery, withToken: Bool) -> [UInt8]? {
    switch self {
    case .lines: delivery.payload.contains(0x0A) ? nil : delivery.payload + [0x0A]
    case .ndjson: NDJSONMessage(delivery, withToken: withToken).line
    }
  }

  /// The line for a message of the log, likewise.
  func line(for message: LogMessage) -> [UInt8]? {
    switch self {
    case .lines: message.payload.contains(0x0A) ? nil : message.payload + [0x0A]
    case .ndjson: NDJSONMessage(message).line
    }
  }
}

/// A timetoken on the command line.
struct TimetokenArgument: ExpressibleByArgument {
  let timetoken: Timetoken

  init?(argument: String) {
    guard let timetoken = Timetoken(argument) else { return nil }
    self.timetoken = timetoken
  }
}

/// A lease token on the command line: it settles one delivery and says nothing about the message.
struct LeaseTokenArgument: ExpressibleByArgument {
  let token: LeaseToken

  init?(argument: String) {
    guard let token = LeaseToken(argument) else { return nil }
    self.token = token
  }
}
