package import MessagingQueue

/// An event for subscribers: a message of the log, or one that is not stored.
///
/// All subscribers share it.
package final class LiveEvent: Sendable {
  package let message: LogMessage
  /// Whether it is a message of the log.
  package let isStored: Bool
  /// The name of its application.
  let application: String
  /// The topics under which subscribers find it, its channel first.
  let topics: [Channel]
  /// Bytes of its payload and headers.
  package let byteCount: Int

  init(_ message: LogMessage, isStored: Bool) {
    self.message = message
    self.isStored = isStored
    application = String(
      decoding: message.channel.name.utf8.prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
    topics = message.channel.topics
    byteCount = message.payload.count + message.headers.byteCount
  }

  var place: Timetoken { message.timetoken }
}

extension [String: String] {
  /// The bytes of names and values.
  var byteCount: Int { reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } }
}

/// What a subscriber gets: events in the order of their places, and the place to continue from.
package struct Events: Sendable {
  /// An event, and why the subscriber gets it.
  package struct Event: Sendable {
    package let event: LiveEvent
    package let source: Subscription.Source

    package var message: LogMessage { event.message }
    /// Whether it is a message of the log, which history has too.
    package var isStored: Bool { event.isStored }
  }

  /// The most that one answer has.
  struct Limits {
    var count = 100
    /// Payloads and headers; the first event always has room.
    var byteCount = 1 << 20
  }

  package private(set) var events: [Event] = []
  /// The place up to which the subscriber has all its events.
  package private(set) var end: Timetoken
  private let limits: Limits
  private var byteCount = 0
  private var isFull = false

  init(end: Timetoken, _ limits: Limits) {
    self.end = end
    self.limits = limits
  }

  /// Appends an event, unless it is the last one.
  ///
  /// - Parameter source: a direct subscription before a group, and the first group before others.
  /// - Returns: false if there is no room, and the subscriber continues after the last one.
  mutating func append(_ event: LiveEvent, through source: Subscription.Source) -> Bool {
    if isFull { return false }
    let last = events.last?.event
    if event === last { return true }
    if let last, events.count >= limits.count || byteCount + event.byteCount > limits.byteCount {
      isFull = true
      end = last.place
      return false
    }
    byteCount += event.byteCount
    events.append(Event(event: event, source: source))
    return true
  }
}
