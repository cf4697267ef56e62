public import ArgumentParser
internal import CommandInterface
internal import Foundation
public import MessagingQueue

/// The options of `queue publish` that set the members of each message.
///
/// A line of JSON overrides them.
struct MessageOptions: ParsableArguments {
  @Option(
    name: .customLong("header"),
    help: ArgumentHelp(
      "Add a header. Can be repeated. The name ends at the first =.",
      valueName: "name=value"))
  var headers: [HeaderArgument] = []

  @Option(
    help: ArgumentHelp(
      "The ordering key. A consumer gets its messages one at a time, in order.",
      valueName: "key"))
  var orderingKey: String?

  @Option(
    help: ArgumentHelp(
      "0 to 9. 9 is the most urgent. Not with an ordering key. Default: 4.", valueName: "n"))
  var priority: Int?

  @Option(
    help: ArgumentHelp(
      "Deliver the message after this time: 500ms, 30s, 5m, 1h, 7d.", valueName: "time"))
  var delay: DurationArgument?

  @Option(
    name: .customLong("at"),
    help: ArgumentHelp(
      "Deliver the message after this date: 2026-11-21T08:15:00Z.", valueName: "date"))
  var date: DateArgument?

  @Option(help: ArgumentHelp("Do not deliver the message after this time.", valueName: "time"))
  var timeToLive: DurationArgument?

  @Option(
    help: ArgumentHelp(
      "Publish nothing if this id was published in the last hour. For one message.",
      valueName: "id"))
  var deduplicationID: String?

  func validate() throws {
    guard Set(headers.map(\.name)).count == headers.count else {
      throw ValidationError("two --header options have the same name, or equivalent ones")
    }
    if delay != nil, date != nil { throw ValidationError("give only one of --delay and --at") }
  }

  /// Makes a message with these options and an empty payload.
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

extension Timetoken: ExpressibleByArgument {}

extension LeaseToken: ExpressibleByArgument {}
