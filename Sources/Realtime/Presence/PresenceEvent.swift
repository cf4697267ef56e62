package import MessagingQueue

/// The id of a user, compared byte by byte.
///
/// Two spellings of `é` are two users, as they are two channels.
package struct UserID: Sendable, Hashable, CustomStringConvertible {
  /// The id as the client gave it.
  package let text: String

  package init(_ text: String) { self.text = text }

  /// The id.
  package var description: String { text }

  package static func == (a: UserID, b: UserID) -> Bool {
    let left = a.text.utf8.span
    let right = b.text.utf8.span
    guard left.count == right.count else { return false }
    for offset in 0..<left.count where left[offset] != right[offset] { return false }
    return true
  }

  package func hash(into hasher: inout Hasher) {
    let bytes = text.utf8.span
    unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    hasher.combine(0xFF as UInt8)
  }
}

/// Two readings of the time: one that never jumps, for deadlines, and one for people.
package struct PresenceTime: Sendable, Hashable {
  /// Never earlier than that of the call before.
  package let instant: ContinuousClock.Instant
  /// Seconds since 1970.
  package let unixSeconds: Int

  package init(_ instant: ContinuousClock.Instant, unixSeconds: Int) {
    self.instant = instant
    self.unixSeconds = unixSeconds
  }
}

/// A change of presence, for the subscribers of the channel's presence.
package struct PresenceEvent: Sendable, Hashable {
  /// What happened to a user.
  package enum Action: Sendable, Hashable {
    case join
    /// The user left by a call of its own.
    case leave
    /// The user gave no sign of life in time.
    case timeout
    case stateChange
  }

  /// One change, or a summary.
  package enum Content: Sendable, Hashable {
    /// The state is JSON text: the new one, or for a leave and a timeout the last one; nil if the user had none.
    case change(Action, UserID, state: [UInt8]?)
    /// Stands for all joins, leaves and timeouts of a crowded channel since the event before.
    case interval(Interval)
  }

  /// Who came and went, in the order of the changes.
  ///
  /// A user who came and went between two events is in no list.
  package struct Interval: Sendable, Hashable {
    package var joined: [UserID] = []
    package var left: [UserID] = []
    package var timedOut: [UserID] = []
    /// Whether there were more changes than the lists hold.
    ///
    /// The lists are then empty, and the client has to ask who is present.
    package var isIncomplete = false
  }

  package let channel: Channel
  package let content: Content
  /// How many users are present after the change.
  package let occupancy: Int
  /// Seconds since 1970.
  package let unixSeconds: Int
}
