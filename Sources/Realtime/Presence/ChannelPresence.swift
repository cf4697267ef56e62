internal import MessagingQueue

/// The users of a channel, and the changes that it has not announced yet.
struct ChannelPresence: Sendable {
  /// In the order in which they joined; nil where one has left.
  private var places: [UserID?] = []
  private var indices: [UserID: Int] = [:]
  /// The interval that runs, if the channel is crowded and there were changes.
  private(set) var announcement: PresenceAnnouncement?

  var occupancy: Int { indices.count }

  /// How many places are kept, those of users who have left included.
  var placeCount: Int { places.count }

  /// A page of the users, in the order in which they joined.
  func users(offset: Int, maximumCount: Int) -> [UserID] {
    Array(places.lazy.compactMap(\.self).dropFirst(max(offset, 0)).prefix(max(maximumCount, 0)))
  }

  /// Takes a change.
  ///
  /// - Returns: the event, or none while the channel is crowded. What the channel has not announced yet comes first.
  mutating func apply(
    _ action: PresenceEvent.Action, _ user: UserID, state: [UInt8]?, of channel: Channel,
    at now: PresenceTime, _ limits: PresenceLimits
  ) -> [PresenceEvent] {
    switch action {
    case .join: append(user)
    case .leave, .timeout: remove(user)
    case .stateChange: break
    }
    let event = PresenceEvent(
      channel: channel, content: .change(action, user, state: state), occupancy: occupancy,
      unixSeconds: now.unixSeconds)
    if action == .stateChange { return [event] }
    guard occupancy > limits.announceMaximum else {
      return [endInterval(of: channel, at: now), event].compactMap(\.self)
    }
    if announcement == nil {
      announcement = PresenceAnnouncement(end: now.instant + limits.announceInterval)
    }
    announcement?.add(action, of: user, limits)
    return []
  }

  /// Ends the interval that runs; nil if there is none.
  mutating func endInterval(of channel: Channel, at now: PresenceTime) -> PresenceEvent? {
    guard let ended = announcement else { return nil }
    announcement = nil
    return PresenceEvent(
      channel: channel, content: .interval(ended.content), occupancy: occupancy,
      unixSeconds: now.unixSeconds)
  }

  private mutating func append(_ user: UserID) {
    guard indices[user] == nil else { return }
    indices[user] = places.count
    places.append(user)
  }

  private mutating func remove(_ user: UserID) {
    guard let index = indices.removeValue(forKey: user) else { return }
    places[index] = nil
    guard places.count > 2 * indices.count + 32 else { return }
    places = places.filter { $0 != nil }
    for (index, user) in places.enumerated() { if let user { indices[user] = index } }
  }
}

/// The changes of a crowded channel that wait for the end of an interval.
struct PresenceAnnouncement: Sendable {
  let end: ContinuousClock.Instant
  private var changes: [UserID: (action: PresenceEvent.Action, number: Int)] = [:]
  private var count = 0
  private var isIncomplete = false

  init(end: ContinuousClock.Instant) { self.end = end }

  /// Adds a change of a user; it cancels one that it undoes.
  mutating func add(
    _ action: PresenceEvent.Action, of user: UserID, _ limits: PresenceLimits
  ) {
    guard limits.announcesUsers, !isIncomplete else { return }
    count += 1
    if let earlier = changes[user], (earlier.action == .join) != (action == .join) {
      changes[user] = nil
    } else {
      changes[user] = (action, count)
    }
    if changes.count > limits.maximumAnnouncedCount {
      isIncomplete = true
      changes = [:]
    }
  }

  var content: PresenceEvent.Interval {
    var interval = PresenceEvent.Interval()
    interval.isIncomplete = isIncomplete
    for (user, change) in changes.sorted(by: { $0.value.number < $1.value.number }) {
      switch change.action {
      case .join: interval.joined.append(user)
      case .leave: interval.left.append(user)
      case .timeout: interval.timedOut.append(user)
      case .stateChange: break
      }
    }
    return interval
  }
}
