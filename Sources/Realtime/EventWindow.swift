internal import DequeModule
internal import MessagingQueue

/// The newest events, in memory: a subscriber whose place is among them needs no read of the database.
struct EventWindow {
  /// The most events and bytes that the window holds.
  struct Limits {
    /// Default: 100,000.
    var count = 100_000
    /// Payloads and headers.
    ///
    /// Default: 64 MiB.
    var byteCount = 64 << 20
  }

  /// The window has every event after this place.
  private(set) var start: Timetoken
  /// The window has every event up to this place.
  private(set) var end: Timetoken

  private let limits: Limits
  private var events: Deque<LiveEvent> = []
  private var byteCount = 0
  /// How many events have left the window.
  private var removedCount = 0
  /// The numbers of the events of each topic, counted from the first that the window ever had.
  private var numbers: [Channel: Deque<Int>] = [:]

  /// An empty window at a place of the log.
  init(at place: Timetoken, _ limits: Limits = Limits()) {
    start = place
    end = place
    self.limits = limits
  }

  /// Drops all events, and begins at another place.
  mutating func startAgain(at place: Timetoken) { self = EventWindow(at: place, limits) }

  /// Takes the events that follow the window, and removes the oldest over its limits.
  mutating func append(_ added: [LiveEvent], end newEnd: Timetoken) {
    for event in added {
      for topic in event.topics {
        numbers[topic, default: []].append(removedCount + events.count)
      }
      events.append(event)
      byteCount += event.byteCount
    }
    end = newEnd
    while events.count > limits.count || byteCount > limits.byteCount { removeFirst() }
  }

  private mutating func removeFirst() {
    let event = events.removeFirst()
    for topic in event.topics {
      numbers[topic]?.removeFirst()
      if numbers[topic]?.isEmpty == true { numbers[topic] = nil }
    }
    removedCount += 1
    byteCount -= event.byteCount
    start = event.place
  }

  /// The subscriber's events after a place; nil if the window begins later.
  func events(
    for subscription: Subscription, after place: Timetoken, _ limits: Events.Limits
  ) -> Events? {
    guard place >= start else { return nil }
    var found: [(number: Int, group: Int?)] = []
    func find(_ topic: Channel, group: Int?) {
      guard let numbers = numbers[topic] else { return }
      let first = numbers.partitioningIndex { events[$0 - removedCount].place > place }
      // One more than asked for shows whether there are more.
      for number in numbers[first...].prefix(limits.count + 1) { found.append((number, group)) }
    }
    for topic in subscription.topics { find(topic, group: nil) }
    for (index, group) in subscription.groups.enumerated() {
      for channel in group.channels { find(channel, group: index) }
    }
    var answer = Events(end: max(place, end), limits)
    // An event of several topics and groups comes several times in a row, first for a topic.
    for (number, group) in found.sorted(by: {
      ($0.number, $0.group ?? -1) < ($1.number, $1.group ?? -1)
    }) {
      let event = events[number - removedCount]
      let source =
        group.map { .group(subscription.groups[$0].name) } ?? subscription.source(of: event.topics)
      guard let source else { continue }
      guard answer.append(event, through: source) else { break }
    }
    return answer
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
