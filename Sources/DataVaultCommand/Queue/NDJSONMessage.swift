internal import ArgumentParser
internal import MessagingQueue

/// A message as one line of JSON: `payload` if it is UTF-8, otherwise `payloadBase64`.
///
/// The line contains all members of the message, and reading it restores them. Members with a
/// default value are omitted.
struct NDJSONMessage {
  private let timetoken: Timetoken
  private let channel: Channel
  private let payload: [UInt8]
  private let headers: [String: String]
  private let priority: Priority
  private let orderingKey: String?
  private let expires: Int64?
  private var due: Int64?
  private var attempt: Int?
  private var token: String?

  init(_ delivery: Delivery, withToken: Bool) {
    timetoken = delivery.timetoken
    channel = delivery.channel
    payload = delivery.payload
    headers = delivery.headers
    priority = delivery.priority
    orderingKey = delivery.orderingKey
    expires = delivery.expirationTicks
    attempt = delivery.attempt
    token = withToken ? delivery.token.description : nil
  }

  init(_ message: LogMessage) {
    timetoken = message.timetoken
    channel = message.channel
    payload = message.payload
    headers = message.headers
    priority = message.priority
    orderingKey = message.orderingKey
    expires = message.expirationTicks
    due = message.availabilityTicks
  }

  /// The line, newline included.
  ///
  /// Timetokens are strings, because they have more digits than a JavaScript number can store.
  var line: [UInt8] {
    var line = JSONObjectWriter()
    line.add("timetoken", time: timetoken.rawValue)
    line.add("channel", channel.name)
    line.add("attempt", number: attempt)
    line.add("token", token)
    line.add("priority", number: priority == .normal ? nil : priority.rawValue)
    line.add("at", due.map { DateArgument(ticks: $0).text })
    line.add("expires", expires.map { DateArgument(ticks: $0).text })
    line.add("orderingKey", orderingKey)
    line.add("headers", texts: headers)
    line.add("payload", orBase64: "payloadBase64", payload)
    return line.line
  }
}

extension NDJSONMessage {
  /// Reads a message; nil for a blank line.
  ///
  /// Members that the line does not have come from `prototype`, each header separately. Members of
  /// a delivery are ignored, so that the output of `receive` can be published again. The line
  /// itself is parsed strictly (``JSONLine``).
  static func message(
    of line: [UInt8], like prototype: Message, number: Int
  ) throws(CommandFailure) -> Message? {
    if JSONLine.isBlank(line) { return nil }
    let members: JSONLine
    do throws(JSONFault) {
      members = try JSONLine(line)
    } catch {
      throw failure(number, "\(error)")
    }
    guard !isExported(members) else {
      throw failure(
        number, "belongs to an export of messages",
        hint: "to import the whole file, run datavault queue import")
    }
    var message = prototype
    message.payload = try payload(of: members, number)
    try readHeaders(of: members, into: &message, number)
    try readTimes(of: members, into: &message, number)
    if let text = try text("orderingKey", of: members, number) { message.orderingKey = text }
    if let id = try text("deduplicationID", of: members, number) { message.deduplicationID = id }
    if let value = members["priority"] {
      guard let rank = value.wholeNumber, let priority = try? Priority(rank) else {
        throw failure(number, "has a priority that is not a number from 0 to 9")
      }
      message.priority = priority
    }
    return message
  }

  /// Whether the line is the first line or a message of an export.
  ///
  /// Publishing an exported message would lose its dates and consumers.
  private static func isExported(_ members: JSONLine) -> Bool {
    switch members["record"]?.text {
    case "export": members["highWater"] != nil
    case "message": members["timetoken"] != nil
    default: false
    }
  }

  private static func payload(
    of members: JSONLine, _ number: Int
  ) throws(CommandFailure) -> [UInt8] {
    switch (members["payload"], members["payloadBase64"]) {
    case (let value?, nil):
      guard let text = value.text else {
        throw failure(number, "has a payload that is not a string")
      }
      return Array(text.utf8)
    case (nil, let value?):
      guard let payload = value.text.flatMap(Base64Text.decode) else {
        throw failure(number, "has a payloadBase64 that is not base64")
      }
      return payload
    default:
      throw failure(number, "needs exactly one of payload and payloadBase64")
    }
  }

  private static func readHeaders(
    of members: JSONLine, into message: inout Message, _ number: Int
  ) throws(CommandFailure) {
    guard let value = members["headers"] else { return }
    guard let headers = value.members else {
      throw failure(number, "has headers that are not an object")
    }
    // Swift treats names as equal that are canonically equivalent in Unicode.
    guard Set(headers.map(\.name)).count == headers.count else {
      throw failure(number, "has two headers whose names are equivalent")
    }
    for (name, value) in headers {
      guard let text = value.text else {
        throw failure(number, "has a header that is not a string")
      }
      message.headers[name] = nil
      message.headers[name] = text
    }
  }

  /// Reads `delay` or `at`, and `timeToLive` or `expires`.
  ///
  /// `delay` and `timeToLive` are durations in the format of the options. `at` and `expires` are
  /// dates.
  private static func readTimes(
    of members: JSONLine, into message: inout Message, _ number: Int
  ) throws(CommandFailure) {
    let delay: DurationArgument? = try argument("delay", of: members, number, "such as \"30s\"")
    let date: DateArgument? = try argument("at", of: members, number, "a date")
    let timeToLive: DurationArgument? = try argument(
      "timeToLive", of: members, number, "such as \"30s\"")
    let expires: DateArgument? = try argument("expires", of: members, number, "a date")
    if delay != nil, date != nil { throw failure(number, "has both delay and at") }
    if timeToLive != nil, expires != nil {
      throw failure(number, "has both timeToLive and expires")
    }
    if let delay { message.availability = .after(delay.duration) }
    if let date { message.availability = .at(ticks: date.ticks) }
    if let timeToLive { message.timeToLive = timeToLive.duration }
    if let expires {
      message.timeToLive = nil
      message.expirationTicks = expires.ticks
    }
  }

  private static func argument<Argument: ExpressibleByArgument>(
    _ name: String, of members: JSONLine, _ number: Int, _ rule: String
  ) throws(CommandFailure) -> Argument? {
    guard let text = try text(name, of: members, number) else { return nil }
    guard let argument = Argument(argument: text) else {
      throw failure(number, "has a member \(name) that is not \(rule)")
    }
    return argument
  }

  private static func text(
    _ name: String, of members: JSONLine, _ number: Int
  ) throws(CommandFailure) -> String? {
    guard let value = members[name] else { return nil }
    guard let text = value.text else {
      throw failure(number, "has a member \(name) that is not a string")
    }
    return text
  }

  private static func failure(
    _ number: Int, _ fault: String, hint: String = "correct the line, and publish from that line on"
  ) -> CommandFailure {
    CommandFailure(.badData, "line \(number) \(fault)", hint: hint)
  }
}
