internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue
internal import StrictJSON

/// A line of JSON from which a message is read: `payload` if it is UTF-8, otherwise `payloadBase64`.
struct NDJSONMessage {
  private let members: JSONLine
  /// The number of the line, for errors.
  private let number: Int

  /// Parses a line strictly (``JSONLine``).
  init(_ line: [UInt8], number: Int) throws(CommandFailure) {
    self.number = number
    do throws(JSONFault) {
      members = try JSONLine(line)
    } catch {
      throw CommandFailure(.badData, "line \(number) \(error)", hint: Self.hint)
    }
  }

  /// Makes the message.
  ///
  /// Members that the line does not have come from `prototype`, each header separately. Members of
  /// a delivery are ignored, so that the output of `receive` can be published again.
  func message(like prototype: Message) throws(CommandFailure) -> Message {
    guard !isExported else {
      throw failure(
        "belongs to an export of messages",
        hint: "to import the whole file, run datavault queue import")
    }
    var message = prototype
    message.payload = try payload()
    try readHeaders(into: &message)
    try readTimes(into: &message)
    if let text = try text("orderingKey") { message.orderingKey = text }
    if let id = try text("deduplicationID") { message.deduplicationID = id }
    if let value = members["priority"] {
      guard let rank = value.integer, let priority = try? Priority(Int(rank)) else {
        throw failure("has a priority that is not a number from 0 to 9")
      }
      message.priority = priority
    }
    return message
  }

  /// Whether the line is the first line or a message of an export.
  ///
  /// Publishing an exported message would lose its dates and consumers.
  private var isExported: Bool {
    switch members["record"]?.string {
    case "export": members["highWater"] != nil
    case "message": members["timetoken"] != nil
    default: false
    }
  }

  private func payload() throws(CommandFailure) -> [UInt8] {
    switch (members["payload"], members["payloadBase64"]) {
    case (let value?, nil):
      guard let text = value.string else {
        throw failure("has a payload that is not a string")
      }
      return Array(text.utf8)
    case (nil, let value?):
      guard let payload = value.string.flatMap(Base64Text.decode) else {
        throw failure("has a payloadBase64 that is not base64")
      }
      return payload
    default:
      throw failure("needs exactly one of payload and payloadBase64")
    }
  }

  private func readHeaders(into message: inout Message) throws(CommandFailure) {
    guard let value = members["headers"] else { return }
    guard let headers = value.members else {
      throw failure("has headers that are not an object")
    }
    // Swift treats names as equal that are canonically equivalent in Unicode.
    guard Set(headers.map(\.name)).count == headers.count else {
      throw failure("has two headers whose names are equivalent")
    }
    for header in headers {
      guard let text = header.value.string else {
        throw failure("has a header that is not a string")
      }
      message.headers[header.name] = nil
      message.headers[header.name] = text
    }
  }

  /// Reads `delay` or `at`, and `timeToLive` or `expires`.
  ///
  /// `delay` and `timeToLive` are durations in the format of the options. `at` and `expires` are
  /// dates.
  private func readTimes(into message: inout Message) throws(CommandFailure) {
    let delay: DurationArgument? = try argument("delay", "such as \"30s\"")
    let date: DateArgument? = try argument("at", "a date")
    let timeToLive: DurationArgument? = try argument("timeToLive", "such as \"30s\"")
    let expires: DateArgument? = try argument("expires", "a date")
    if delay != nil, date != nil { throw failure("has both delay and at") }
    if timeToLive != nil, expires != nil { throw failure("has both timeToLive and expires") }
    if let delay { message.availability = .after(delay.duration) }
    if let date { message.availability = .at(ticks: date.ticks) }
    if let timeToLive { message.timeToLive = timeToLive.duration }
    if let expires {
      message.timeToLive = nil
      message.expirationTicks = expires.ticks
    }
  }

  private func argument<Argument: ExpressibleByArgument>(
    _ name: String, _ rule: String
  ) throws(CommandFailure) -> Argument? {
    guard let text = try text(name) else { return nil }
    guard let argument = Argument(argument: text) else {
      throw failure("has a member \(name) that is not \(rule)")
    }
    return argument
  }

  private func text(_ name: String) throws(CommandFailure) -> String? {
    guard let value = members[name] else { return nil }
    guard let text = value.string else {
      throw failure("has a member \(name) that is not a string")
    }
    return text
  }

  private func failure(_ fault: String, hint: String = Self.hint) -> CommandFailure {
    CommandFailure(.badData, "line \(number) \(fault)", hint: hint)
  }

  private static let hint = "correct the line, and publish from that line on"
}

extension StoredMessage {
  /// The message as one line of JSON, newline included.
  ///
  /// The line contains all members of the message, and reading it restores them. Members with a
  /// default value are omitted. Timetokens are strings, because they have more digits than a
  /// JavaScript number can store.
  func jsonLine(
    attempt: Int?, token: LeaseToken?, availabilityTicks: Int64?
  ) -> [UInt8] {
    var line = JSONObjectWriter()
    line.add("timetoken", time: timetoken.rawValue)
    line.add("channel", channel.name)
    line.add("attempt", number: attempt)
    line.add("token", token?.description)
    line.add("priority", number: priority == .normal ? nil : priority.rawValue)
    line.add("at", availabilityTicks.map { DateArgument(ticks: $0).text })
    line.add("expires", expirationTicks.map { DateArgument(ticks: $0).text })
    line.add("orderingKey", orderingKey)
    line.add("headers", texts: headers)
    line.add("payload", orBase64: "payloadBase64", payload)
    return line.line
  }
}
