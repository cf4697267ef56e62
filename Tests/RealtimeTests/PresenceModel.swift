import MessagingQueue

@testable import Realtime

/// Presence as a list of rows and some loops: slow, and easy to check by reading.
struct PresenceModel {
  /// A user on a channel, in the order of joining.
  struct Row {
    let application: String
    let user: UserID
    let channel: Channel
    var arrival: UInt64
    var timeout: Duration
    var deadline: ContinuousClock.Instant
    var state: [UInt8]?
    var stateArrival: UInt64 = 0
  }

  struct Interval {
    let application: String
    let channel: Channel
    let end: ContinuousClock.Instant
    var changes: [(action: PresenceEvent.Action, user: UserID)] = []
  }

  typealias Leave = (
    application: String, user: UserID, channel: Channel, arrival: UInt64,
    end: ContinuousClock.Instant
  )

  let limits: PresenceLimits
  var rows: [Row] = []
  var intervals: [Interval] = []
  var leaves: [Leave] = []

  func index(_ application: String, _ user: UserID, _ channel: Channel) -> Int? {
    rows.firstIndex { $0.application == application && $0.user == user && $0.channel == channel }
  }

  func rows(_ application: String, _ channel: Channel) -> [Row] {
    rows.filter { $0.application == application && $0.channel == channel }
  }

  mutating func join(
    _ user: UserID, of application: String, on all: [Channel], state: [Channel: [UInt8]],
    timeout: Duration?, arrival: UInt64, at now: PresenceTime
  ) throws(PresenceRefusal) -> [PresenceEvent] {
    let channels = all.filter { !$0.name.hasSuffix("-pnpres") }
    var new: Set<Channel> = []
    for channel in channels where index(application, user, channel) == nil { new.insert(channel) }
    let own = rows.filter { $0.application == application && $0.user == user }
    let here = rows.filter { $0.application == application }
    if !new.isEmpty {
      if own.isEmpty, Set(here.map(\.user)).count == limits.maximumUserCount {
        throw .tooManyUsers
      }
      if own.count + new.count > limits.maximumChannelCount { throw .tooManyChannels }
      if here.count + new.count > limits.maximumPresenceCount { throw .tooManyPresences }
    }
    try check(user, of: application, states: state.filter { channels.contains($0.key) })
    var events: [PresenceEvent] = []
    for channel in channels {
      let hasLeft = leaves.contains {
        $0.application == application && $0.user == user && $0.channel == channel
          && $0.arrival > arrival && $0.end > now.instant
      }
      if hasLeft { continue }
      let wanted = timeout.map { min(max($0, .seconds(1)), .seconds(3_600)) }
      guard let index = index(application, user, channel) else {
        let timeout = wanted ?? .seconds(300)
        rows.append(
          Row(
            application: application, user: user, channel: channel, arrival: arrival,
            timeout: timeout, deadline: now.instant + timeout, state: state[channel],
            stateArrival: state[channel] == nil ? 0 : arrival))
        events += announce(.join, user, state[channel], application, channel, now)
        continue
      }
      if arrival > rows[index].arrival {
        rows[index].arrival = arrival
        rows[index].timeout = wanted ?? rows[index].timeout
        rows[index].deadline = now.instant + rows[index].timeout
      }
      if let state = state[channel] {
        events += set(state, at: index, arrival: arrival, now)
      }
    }
    return events
  }

  mutating func leave(
    _ user: UserID, of application: String, on channels: [Channel], arrival: UInt64,
    at now: PresenceTime
  ) -> [PresenceEvent] {
    var events: [PresenceEvent] = []
    for channel in channels where !channel.name.hasSuffix("-pnpres") {
      if let index = index(application, user, channel) {
        if rows[index].arrival > arrival { continue }
        events += remove(at: index, .leave, now)
      }
      leaves.append((application, user, channel, arrival, now.instant + .seconds(10)))
    }
    return events
  }

  mutating func setState(
    _ state: [UInt8], of user: UserID, of application: String, on channels: [Channel],
    arrival: UInt64, at now: PresenceTime
  ) throws(PresenceRefusal) -> [PresenceEvent] {
    let present = channels.filter { index(application, user, $0) != nil }
    var states: [Channel: [UInt8]] = [:]
    for channel in present { states[channel] = state }
    try check(user, of: application, states: states)
    var events: [PresenceEvent] = []
    for channel in present {
      if let index = index(application, user, channel) {
        events += set(state, at: index, arrival: arrival, now)
      }
    }
    return events
  }

  mutating func expire(at now: PresenceTime) -> [PresenceEvent] {
    var events: [PresenceEvent] = []
    for application in ["bank", "shop"] {
      while let index = rows.indices.filter({
        rows[$0].application == application && rows[$0].deadline <= now.instant
      }).min(by: { isBefore(rows[$0], rows[$1]) }) {
        events += remove(at: index, .timeout, now)
      }
      while let index = intervals.indices.filter({
        intervals[$0].application == application && intervals[$0].end <= now.instant
      }).min(by: { intervals[$0].channel.name < intervals[$1].channel.name }) {
        events.append(end(intervals.remove(at: index), now))
      }
    }
    return events
  }

  /// When something ends.
  var deadlines: [ContinuousClock.Instant] { rows.map(\.deadline) + intervals.map(\.end) }

  private func isBefore(_ a: Row, _ b: Row) -> Bool {
    if a.deadline != b.deadline { return a.deadline < b.deadline }
    if a.user != b.user {
      return Array(a.user.text.utf8).lexicographicallyPrecedes(b.user.text.utf8)
    }
    return a.channel.name < b.channel.name
  }

  private mutating func remove(
    at index: Int, _ action: PresenceEvent.Action, _ now: PresenceTime
  ) -> [PresenceEvent] {
    let row = rows.remove(at: index)
    return announce(action, row.user, row.state, row.application, row.channel, now)
  }

  private mutating func set(
    _ state: [UInt8], at index: Int, arrival: UInt64, _ now: PresenceTime
  ) -> [PresenceEvent] {
    if arrival < rows[index].stateArrival { return [] }
    rows[index].stateArrival = arrival
    if rows[index].state == state { return [] }
    rows[index].state = state
    let row = rows[index]
    return announce(.stateChange, row.user, state, row.application, row.channel, now)
  }

  private mutating func announce(
    _ action: PresenceEvent.Action, _ user: UserID, _ state: [UInt8]?, _ application: String,
    _ channel: Channel, _ now: PresenceTime
  ) -> [PresenceEvent] {
    let occupancy = rows(application, channel).count
    let event = PresenceEvent(
      channel: channel, content: .change(action, user, state: state), occupancy: occupancy,
      unixSeconds: now.unixSeconds)
    if action == .stateChange { return [event] }
    let index = intervals.firstIndex { $0.application == application && $0.channel == channel }
    if occupancy <= limits.announceMaximum {
      return (index.map { [end(intervals.remove(at: $0), now)] } ?? []) + [event]
    }
    if let index {
      intervals[index].changes.append((action, user))
    } else {
      intervals.append(
        Interval(
          application: application, channel: channel, end: now.instant + .seconds(10),
          changes: [(action, user)]))
    }
    return []
  }

  private func end(_ interval: Interval, _ now: PresenceTime) -> PresenceEvent {
    var content = PresenceEvent.Interval()
    if limits.announcesUsers {
      content = net(interval.changes)
      content.isIncomplete = interval.changes.indices.contains {
        let lists = net(Array(interval.changes[...$0]))
        return lists.joined.count + lists.left.count + lists.timedOut.count
          > limits.maximumAnnouncedCount
      }
      if content.isIncomplete { (content.joined, content.left, content.timedOut) = ([], [], []) }
    }
    return PresenceEvent(
      channel: interval.channel, content: .interval(content),
      occupancy: rows(interval.application, interval.channel).count, unixSeconds: now.unixSeconds)
  }

  /// A user who has changed an even number of times is where it was; otherwise the last change counts.
  private func net(
    _ changes: [(action: PresenceEvent.Action, user: UserID)]
  ) -> PresenceEvent.Interval {
    var content = PresenceEvent.Interval()
    for (index, change) in changes.enumerated() {
      let isLast = !changes[(index + 1)...].contains { $0.user == change.user }
      let count = changes.filter { $0.user == change.user }.count
      guard isLast, count % 2 == 1 else { continue }
      switch change.action {
      case .join: content.joined.append(change.user)
      case .leave: content.left.append(change.user)
      default: content.timedOut.append(change.user)
      }
    }
    return content
  }

  private func check(
    _ user: UserID, of application: String, states: [Channel: [UInt8]]
  ) throws(PresenceRefusal) {
    let sum = rows.filter { $0.application == application }.reduce(0) {
      $0 + ($1.state?.count ?? 0)
    }
    var after = sum
    for (channel, state) in states {
      if state.count > limits.maximumStateByteCount { throw .stateTooLarge }
      after += state.count
      if let index = index(application, user, channel) { after -= rows[index].state?.count ?? 0 }
    }
    if after > sum, after > limits.maximumTotalStateByteCount { throw .tooMuchState }
  }
}
