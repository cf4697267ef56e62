internal import DequeModule
internal import MessagingQueue

/// Leaves of the last seconds, against earlier calls that are handled after them.
struct Departures: Sendable {
  private struct Key: Sendable, Hashable {
    let user: UserID
    let channel: Channel
  }

  private var arrivals: [Key: UInt64] = [:]
  /// Those that end first come first, as each has the same time.
  private var ends: Deque<(end: ContinuousClock.Instant, key: Key, arrival: UInt64)> = []

  var isEmpty: Bool { ends.isEmpty }
  var nextEnd: ContinuousClock.Instant? { ends.first?.end }

  /// Whether a user has left a channel by a call that arrived after another.
  func contains(_ user: UserID, _ channel: Channel, after arrival: UInt64) -> Bool {
    arrivals[Key(user: user, channel: channel)].map { $0 > arrival } ?? false
  }

  /// Remembers a leave; over the maximum count, the oldest is forgotten.
  mutating func insert(
    _ user: UserID, _ channel: Channel, arrival: UInt64, until end: ContinuousClock.Instant,
    maximumCount: Int
  ) {
    let key = Key(user: user, channel: channel)
    if let known = arrivals[key], known >= arrival { return }
    arrivals[key] = arrival
    ends.append((end, key, arrival))
    if ends.count > maximumCount { removeFirst() }
  }

  mutating func removeEnded(at now: ContinuousClock.Instant) {
    while let first = ends.first, first.end <= now { removeFirst() }
  }

  private mutating func removeFirst() {
    let first = ends.removeFirst()
    if arrivals[first.key] == first.arrival { arrivals[first.key] = nil }
  }
}
