internal import HeapModule
internal import MessagingQueue

/// The presence of one application.
struct ApplicationPresence: Sendable {
  /// A user on a channel.
  struct Membership: Sendable {
    /// The number of the latest call for the channel.
    var arrival: UInt64
    var timeout: Duration
    var deadline: ContinuousClock.Instant
    var state: [UInt8]?
    /// The number of the latest call with a state.
    var stateArrival: UInt64
  }

  struct User: Sendable {
    var memberships: [Channel: Membership] = [:]
    /// When to look at the deadlines: no later than the first of them.
    ///
    /// A sign of life leaves it as it is, so that it costs no change of the heap.
    var scheduled: ContinuousClock.Instant?
  }

  private struct Deadline: Sendable, Comparable {
    enum Subject: Sendable {
      case user(UserID)
      case announcement(Channel)
    }

    let end: ContinuousClock.Instant
    let subject: Subject

    static func < (a: Deadline, b: Deadline) -> Bool { a.end < b.end }
    static func == (a: Deadline, b: Deadline) -> Bool { a.end == b.end }
  }

  private let limits: PresenceLimits
  private(set) var users: [UserID: User] = [:]
  private(set) var channels: [Channel: ChannelPresence] = [:]
  private var departures = Departures()
  /// Some are outdated: the user or the announcement then has another.
  private var deadlines: Heap<Deadline> = []
  private var presenceCount = 0
  private var stateByteCount = 0

  init(_ limits: PresenceLimits) { self.limits = limits }

  /// How many deadlines are kept, the outdated ones included.
  var deadlineCount: Int { deadlines.count }

  var isEmpty: Bool { users.isEmpty && departures.isEmpty }

  /// When to call ``expire(at:_:)`` next; there can be nothing to end yet.
  var nextDeadline: ContinuousClock.Instant? {
    [deadlines.min?.end, departures.nextEnd].compactMap(\.self).min()
  }

  func isDue(at now: ContinuousClock.Instant) -> Bool { nextDeadline.map { $0 <= now } ?? false }

  // MARK: Changes

  mutating func join(
    _ user: UserID, on channels: [Channel], state: [Channel: [UInt8]], timeout: Duration?,
    arrival: UInt64, at now: PresenceTime
  ) throws(PresenceRefusal) -> [PresenceEvent] {
    let channels = channels.filter { !$0.isPresence }
    try check(user, joins: channels, state: state)
    departures.removeEnded(at: now.instant)
    let timeout = timeout.map { min(max($0, limits.minimumTimeout), limits.maximumTimeout) }
    var earliest: ContinuousClock.Instant?
    var events: [PresenceEvent] = []
    for channel in channels where !departures.contains(user, channel, after: arrival) {
      let known = users[user]?.memberships[channel]
      if known.map({ arrival > $0.arrival }) ?? true {
        let timeout = timeout ?? known?.timeout ?? limits.defaultTimeout
        let deadline = now.instant + timeout
        earliest = min(earliest ?? deadline, deadline)
        users[user, default: User()].memberships[channel] = Membership(
          arrival: arrival, timeout: timeout, deadline: deadline, state: known?.state,
          stateArrival: known?.stateArrival ?? 0)
      }
      let hasChanged = setState(state[channel], of: user, on: channel, arrival: arrival)
      if known == nil {
        presenceCount += 1
        events += announce(.join, user, state: state[channel], on: channel, at: now)
      } else if hasChanged {
        events += announce(.stateChange, user, state: state[channel], on: channel, at: now)
      }
    }
    if let earliest { schedule(user, at: earliest) }
    return events
  }

  mutating func leave(
    _ user: UserID, on channels: [Channel], arrival: UInt64, at now: PresenceTime
  ) -> [PresenceEvent] {
    departures.removeEnded(at: now.instant)
    var events: [PresenceEvent] = []
    for channel in channels where !channel.isPresence {
      if let known = users[user]?.memberships[channel], known.arrival > arrival { continue }
      events += remove(user, from: channel, by: .leave, at: now)
      departures.insert(
        user, channel, arrival: arrival, until: now.instant + limits.departureMemory,
        maximumCount: limits.maximumDepartureCount)
    }
    return events
  }

  mutating func setState(
    _ state: [UInt8], of user: UserID, on channels: [Channel], arrival: UInt64,
    at now: PresenceTime
  ) throws(PresenceRefusal) -> [PresenceEvent] {
    let memberships = users[user]?.memberships ?? [:]
    let channels = channels.filter { memberships[$0] != nil }
    try check(user, states: Dictionary(channels.map { ($0, state) }) { $1 })
    var events: [PresenceEvent] = []
    for channel in channels where setState(state, of: user, on: channel, arrival: arrival) {
      events += announce(.stateChange, user, state: state, on: channel, at: now)
    }
    return events
  }

  /// Looks at no more than the remaining number of deadlines.
  mutating func expire(at now: PresenceTime, _ remaining: inout Int) -> [PresenceEvent] {
    departures.removeEnded(at: now.instant)
    var seen: [UserID] = []
    var ended: [(deadline: ContinuousClock.Instant, user: UserID, channel: Channel)] = []
    var announced: [Channel] = []
    while remaining > 0, let next = deadlines.min, next.end <= now.instant {
      remaining -= 1
      deadlines.removeMin()
      switch next.subject {
      case .user(let id) where users[id]?.scheduled == next.end:
        users[id]?.scheduled = nil
        seen.append(id)
        for (channel, membership) in users[id]?.memberships ?? [:]
        where membership.deadline <= now.instant {
          ended.append((membership.deadline, id, channel))
        }
      case .announcement(let channel) where channels[channel]?.announcement?.end == next.end:
        announced.append(channel)
      default: break
      }
    }
    ended.sort { a, b in
      if a.deadline != b.deadline { return a.deadline < b.deadline }
      if a.user != b.user { return a.user.text.utf8.lexicographicallyPrecedes(b.user.text.utf8) }
      return a.channel.precedes(b.channel)
    }
    var events: [PresenceEvent] = []
    for (_, user, channel) in ended {
      events += remove(user, from: channel, by: .timeout, at: now)
    }
    for user in seen {
      if let first = users[user]?.memberships.values.lazy.map(\.deadline).min() {
        schedule(user, at: first)
      }
    }
    for channel in announced.sorted(by: { $0.precedes($1) }) {
      if let event = channels[channel]?.endInterval(of: channel, at: now) { events.append(event) }
    }
    return events
  }

  // MARK: Steps

  private mutating func remove(
    _ user: UserID, from channel: Channel, by action: PresenceEvent.Action, at now: PresenceTime
  ) -> [PresenceEvent] {
    guard let membership = users[user]?.memberships.removeValue(forKey: channel) else { return [] }
    if users[user]?.memberships.isEmpty == true { users[user] = nil }
    presenceCount -= 1
    stateByteCount -= membership.state?.count ?? 0
    return announce(action, user, state: membership.state, on: channel, at: now)
  }

  /// Whether the state is another than before.
  private mutating func setState(
    _ state: [UInt8]?, of user: UserID, on channel: Channel, arrival: UInt64
  ) -> Bool {
    guard let state, let known = users[user]?.memberships[channel], arrival >= known.stateArrival
    else { return false }
    users[user]?.memberships[channel]?.stateArrival = arrival
    guard state != known.state else { return false }
    users[user]?.memberships[channel]?.state = state
    stateByteCount += state.count - (known.state?.count ?? 0)
    return true
  }

  private mutating func announce(
    _ action: PresenceEvent.Action, _ user: UserID, state: [UInt8]?, on channel: Channel,
    at now: PresenceTime
  ) -> [PresenceEvent] {
    let before = channels[channel]?.announcement?.end
    let events = channels[channel, default: ChannelPresence()].apply(
      action, user, state: state, of: channel, at: now, limits)
    if let end = channels[channel]?.announcement?.end, end != before {
      insert(Deadline(end: end, subject: .announcement(channel)))
    }
    if channels[channel]?.occupancy == 0 { channels[channel] = nil }
    return events
  }

  private mutating func schedule(_ user: UserID, at end: ContinuousClock.Instant) {
    if let scheduled = users[user]?.scheduled, scheduled <= end { return }
    users[user]?.scheduled = end
    insert(Deadline(end: end, subject: .user(user)))
  }

  /// Inserts a deadline, and removes the outdated ones if they are the most.
  private mutating func insert(_ deadline: Deadline) {
    deadlines.insert(deadline)
    guard deadlines.count > 2 * (users.count + channels.count) + 1_000 else { return }
    var current: [Deadline] = []
    for (id, user) in users {
      if let end = user.scheduled { current.append(Deadline(end: end, subject: .user(id))) }
    }
    for (channel, presence) in channels {
      if let end = presence.announcement?.end {
        current.append(Deadline(end: end, subject: .announcement(channel)))
      }
    }
    deadlines = Heap(current)
  }

  private func check(
    _ user: UserID, joins channels: [Channel], state: [Channel: [UInt8]]
  ) throws(PresenceRefusal) {
    let known = users[user]?.memberships ?? [:]
    let added = Set(channels.filter { known[$0] == nil })
    if !added.isEmpty {
      if known.isEmpty, users.count >= limits.maximumUserCount { throw .tooManyUsers }
      if known.count + added.count > limits.maximumChannelCount { throw .tooManyChannels }
      if presenceCount + added.count > limits.maximumPresenceCount { throw .tooManyPresences }
    }
    guard !state.isEmpty else { return }
    let listed = Set(channels)
    try check(user, states: state.filter { listed.contains($0.key) })
  }

  private func check(_ user: UserID, states: [Channel: [UInt8]]) throws(PresenceRefusal) {
    var added = 0
    for (channel, state) in states {
      if state.count > limits.maximumStateByteCount { throw .stateTooLarge }
      added += state.count - (users[user]?.memberships[channel]?.state?.count ?? 0)
    }
    if added > 0, stateByteCount + added > limits.maximumTotalStateByteCount { throw .tooMuchState }
  }
}
