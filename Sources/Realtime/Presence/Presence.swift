package import MessagingQueue

/// Who is present on which channel, in all applications of a server.
///
/// A value without I/O and without a clock, which knows no protocol. It lives in the memory of the one server: a restart
/// empties it.
///
/// - **Order.** Each call has the number of its arrival, and calls can be handled out of order. For each user and
///   channel, the call that arrived last decides: a leave ends the presence of earlier calls alone, and an earlier join
///   that is handled after the leave has no effect.
/// - **Channels.** The caller resolves groups. A pattern such as `shop/w.*` is a channel of its own. Names that end in
///   `-pnpres` are ignored: listening to presence makes no user present.
/// - **Refusals.** A call that is refused changes nothing.
package struct Presence: Sendable {
  private let limits: PresenceLimits
  private var applications: [String: ApplicationPresence] = [:]

  package init(_ limits: PresenceLimits = PresenceLimits()) { self.limits = limits }

  // MARK: Changes

  /// A subscribe or a heartbeat: makes a user present on channels, or notes a sign of life there.
  ///
  /// - Parameters:
  ///   - state: JSON text for some of the channels. It replaces the state there.
  ///   - timeout: how long the user stays present without another sign of life. nil: as long as the last call for the
  ///     channel said, or the default.
  ///   - arrival: the number of this call; each call has a higher one than those that arrived before it.
  /// - Returns: a join for each channel where the user was not present, and a change of state for each of the others
  ///   where the state is another.
  package mutating func join(
    _ user: UserID, of application: String, on channels: [Channel],
    state: [Channel: [UInt8]] = [:], timeout: Duration? = nil, arrival: UInt64,
    at now: PresenceTime
  ) throws(PresenceRefusal) -> [PresenceEvent] {
    defer { removeIfEmpty(application) }
    return try applications[application, default: ApplicationPresence(limits)].join(
      user, on: channels, state: state, timeout: timeout, arrival: arrival, at: now)
  }

  /// Ends the presence of a user on channels, but not where a call that arrived later has renewed it.
  ///
  /// - Returns: a leave for each channel where the user was present.
  package mutating func leave(
    _ user: UserID, of application: String, on channels: [Channel], arrival: UInt64,
    at now: PresenceTime
  ) -> [PresenceEvent] {
    defer { removeIfEmpty(application) }
    return applications[application, default: ApplicationPresence(limits)].leave(
      user, on: channels, arrival: arrival, at: now)
  }

  /// Sets the state of a user on those of the channels where the user is present.
  ///
  /// - Parameter state: JSON text.
  /// - Returns: a change of state for each channel where the state was another.
  package mutating func setState(
    _ state: [UInt8], of user: UserID, of application: String, on channels: [Channel],
    arrival: UInt64, at now: PresenceTime
  ) throws(PresenceRefusal) -> [PresenceEvent] {
    try applications[application]?.setState(
      state, of: user, on: channels, arrival: arrival, at: now) ?? []
  }

  /// Ends what has ended: the presence of users without a sign of life, and the intervals of crowded channels.
  ///
  /// - Parameter maximumCount: the most deadlines to look at, so that a call is short however many users are gone. If
  ///   there are more, ``nextDeadline`` has passed, and the caller calls again. Default: 1,000, some 20 ms.
  /// - Returns: for each application the timeouts in the order of their deadlines, then the interval events.
  package mutating func expire(
    at now: PresenceTime, maximumCount: Int = 1_000
  ) -> [PresenceEvent] {
    var events: [PresenceEvent] = []
    var remaining = maximumCount
    let due = applications.filter { $0.value.isDue(at: now.instant) }.map(\.key).sorted()
    for application in due {
      events += applications[application]?.expire(at: now, &remaining) ?? []
      removeIfEmpty(application)
    }
    return events
  }

  /// When to call ``expire(at:maximumCount:)`` next; nil if nothing ends.
  ///
  /// There can be nothing to end yet: a sign of life does not change it.
  package var nextDeadline: ContinuousClock.Instant? {
    applications.values.lazy.compactMap(\.nextDeadline).min()
  }

  private mutating func removeIfEmpty(_ application: String) {
    if applications[application]?.isEmpty == true { applications[application] = nil }
  }

  // MARK: Reads

  /// How many users are present on a channel.
  package func occupancy(of channel: Channel, of application: String) -> Int {
    applications[application]?.channels[channel]?.occupancy ?? 0
  }

  /// Users of a channel with their states, in the order in which they joined.
  ///
  /// - Parameters:
  ///   - offset: how many users to pass over.
  ///   - maximumCount: the most users to return.
  package func users(
    of channel: Channel, of application: String, offset: Int = 0, maximumCount: Int = .max
  ) -> [(user: UserID, state: [UInt8]?)] {
    guard let presence = applications[application] else { return [] }
    return presence.channels[channel]?.users(offset: offset, maximumCount: maximumCount).map {
      ($0, presence.users[$0]?.memberships[channel]?.state)
    } ?? []
  }

  /// Channels of an application where users are present, in no order.
  package func channels(of application: String, maximumCount: Int = .max) -> [Channel] {
    (applications[application]?.channels.keys).map { Array($0.prefix(maximumCount)) } ?? []
  }

  /// The channels where a user is present, in the order of their names' bytes.
  package func channels(of user: UserID, of application: String) -> [Channel] {
    applications[application]?.users[user]?.memberships.keys.sorted { $0.precedes($1) } ?? []
  }

  /// The states of a user on those of the channels where there is one.
  package func states(
    of user: UserID, of application: String, on channels: [Channel]
  ) -> [Channel: [UInt8]] {
    guard let memberships = applications[application]?.users[user]?.memberships else { return [:] }
    var states: [Channel: [UInt8]] = [:]
    for channel in channels { states[channel] = memberships[channel]?.state }
    return states
  }
}

extension Channel {
  /// The order of the names' bytes.
  func precedes(_ other: Channel) -> Bool {
    name.utf8.lexicographicallyPrecedes(other.name.utf8)
  }
}
