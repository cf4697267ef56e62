internal import ArgumentParser
internal import MessagingQueue

/// What `queue retention set` changes: an option a field.
struct RetentionChanges: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The age from which messages may go: 30s, 12h, 7d; none for any.", valueName: "time"))
  var age: LimitArgument<DurationArgument>?

  @Option(help: ArgumentHelp("The most messages; none for any number.", valueName: "n"))
  var count: LimitArgument<Int>?

  @Option(
    help: ArgumentHelp("The most bytes of payloads and headers; none for any.", valueName: "n"))
  var bytes: LimitArgument<Int>?

  @Flag(
    inversion: .prefixedNo,
    help: "Whether what every consumer has acknowledged stays, up to the limits.")
  var keepAcknowledged: Bool?

  @Flag(
    inversion: .prefixedNo, help: "Whether the limits also take what a consumer still needs.")
  var discardUnacknowledged: Bool?

  func validate() throws {
    guard
      age != nil || count != nil || bytes != nil || keepAcknowledged != nil
        || discardUnacknowledged != nil
    else { throw ValidationError("name at least one thing to change") }
  }

  func apply(to retention: inout Retention) {
    if let age { retention.longestAge = age.limit?.duration }
    if let count { retention.maximumMessageCount = count.limit }
    if let bytes { retention.maximumByteCount = bytes.limit }
    if let keepAcknowledged { retention.keepsAcknowledged = keepAcknowledged }
    if let discardUnacknowledged { retention.discardsUnacknowledged = discardUnacknowledged }
  }
}

/// A limit on the command line, or `none`.
struct LimitArgument<Value: ExpressibleByArgument & Sendable>: ExpressibleByArgument, Sendable {
  let limit: Value?

  init?(argument: String) {
    if argument == "none" {
      limit = nil
    } else if let value = Value(argument: argument) {
      limit = value
    } else {
      return nil
    }
  }
}
