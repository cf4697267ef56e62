internal import ArgumentParser
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
