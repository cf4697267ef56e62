internal import DequeModule
package import MessagingQueue

/// The newest part of the log, in memory: a subscriber whose place is in it needs no read of the database.
struct EventWindow {
  /// The most messages and bytes that the window holds.
  struct Limits {
    /// Default: 100,000.
    var count = 100_000
    /// Payloads and headers.
    ///
    /// Default: 64 MiB.
    var byteCount = 64 << 20
  }

  /// The window has every message after this place.
  private(set) var start: Timetoken
  /// The window has every message up to this place.
  private(set) var end: Timetoken

  private let limits: Limits
  private var messages: Deque<LogMessage> = []
  private var byteCount = 0
  /// How many messages have left the window.
  private var removedCount = 0
  /// The numbers of the messages of each topic, counted from the first that the window ever had.
  private var numbers: [Channel: Deque<Int>] = [:]

  /// An empty window at a place of the log.
  init(at place: Timetoken, _ limits: Limits = Limits()) {
    start = place
    end = place
    self.limits = limits
  }

  /// Takes the messages that follow the window, and removes the oldest over its limits.
  mutating func append(_ tail: LogTail) {
    for message in tail.messages {
      for topic in message.channel.topics {
        numbers[topic, default: []].append(removedCount + messages.count)
      }
      messages.append(message)
      byteCount += message.byteCount
    }
    end = max(end, tail.end)
    while messages.count > limits.count || byteCount > limits.byteCount { removeFirst() }
  }

  private mutating func removeFirst() {
    let message = messages.removeFirst()
    for topic in message.channel.topics {
      numbers[topic]?.removeFirst()
      if numbers[topic]?.isEmpty == true { numbers[topic] = nil }
    }
    removedCount += 1
    byteCount -= message.byteCount
    start = message.timetoken
  }

  /// The subscriber's messages after a place; nil if the window begins later.
  func events(for subscription: Subscription, after place: Timetoken, maximumCount: Int) -> Events?
  {
    guard place >= start else { return nil }
    var found: Set<Int> = []
    for topic in subscription.sources.keys {
      guard let numbers = numbers[topic] else { continue }
      let first = numbers.partitioningIndex { messages[$0 - removedCount].timetoken > place }
      // One more than asked for shows whether there are more.
      found.formUnion(numbers[first...].prefix(maximumCount + 1))
    }
    var events = Events(end: max(place, end))
    for number in found.sorted() {
      let message = messages[number - removedCount]
      if !events.append(message, for: subscription, maximumCount: maximumCount) { break }
    }
    return events
  }
}

/// What a subscriber gets: messages in the order of the log, and the place to continue from.
package struct Events: Sendable {
  /// A message, and why the subscriber gets it.
  package struct Event: Sendable {
    package let message: LogMessage
    package let source: Subscription.Source
  }

  package private(set) var events: [Event] = []
  /// The place up to which the subscriber has all its messages.
  package private(set) var end: Timetoken

  init(end: Timetoken) {
    self.end = end
  }

  /// Appends a message; false if there is no room, and the subscriber continues after the last one.
  mutating func append(
    _ message: LogMessage, for subscription: Subscription, maximumCount: Int
  ) -> Bool {
    guard events.count < maximumCount else {
      end = events.last?.message.timetoken ?? end
      return false
    }
    guard let source = subscription.source(of: message.channel.topics) else { return true }
    events.append(Event(message: message, source: source))
    return true
  }
}

extension LogMessage {
  /// The bytes that count towards the window's limit.
  fileprivate var byteCount: Int {
    headers.reduce(payload.count) { $0 + $1.key.utf8.count + $1.value.utf8.count }
  }
}

extension Deque {
  /// The index of the first element that satisfies the condition, which holds from there on.
  fileprivate func partitioningIndex(where condition: (Element) -> Bool) -> Int {
    var range = startIndex..<endIndex
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      range = condition(self[middle]) ? range.lowerBound..<middle : middle + 1..<range.upperBound
    }
    return range.lowerBound
  }
}
