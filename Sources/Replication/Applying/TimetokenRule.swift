/// Gives the messages of the log their timetokens, the same on every node.
///
/// A timetoken is the least multiple of 100 that is at least the one before plus 100, and at least the record's
/// time. A record's time counts only up to ``bound`` ahead of the owner's clock, so that a node whose clock is fast
/// does not drag the log into the future. It never goes by the broker's clock: a record that is appended a second
/// time would get another timetoken.
package struct TimetokenRule: Sendable {
  /// How far a record's time can be ahead of the owner's last heartbeat: a minute, in units of 100 ns.
  package static let bound: Int64 = 600_000_000
  /// The greatest timetoken.
  package static let greatest: Int64 = 99_999_999_999_999_900

  private let time: Int64
  /// The greatest timetoken given out.
  package private(set) var highWater: Int64

  /// - Parameters:
  ///   - time: the sealed time of the record.
  ///   - ownerTime: the sealed time of the owner's last heartbeat; nil before the first.
  package init(highWater: Int64, time: Int64, ownerTime: Int64?) {
    self.highWater = highWater
    var bounded = Self.clamped(time)
    if let ownerTime { bounded = min(bounded, ownerTime + Self.bound) }
    self.time = bounded
  }

  /// The timetoken that the next message would get.
  package var next: Int64 {
    let least = max(highWater + 100, time)
    return min((least + 99) / 100 * 100, Self.greatest)
  }

  /// Gives it out.
  package mutating func take() -> Int64 {
    highWater = next
    return highWater
  }

  /// Makes all later timetokens greater than this one.
  package mutating func raise(to timetoken: Int64) {
    highWater = max(highWater, min(timetoken, Self.greatest))
  }

  /// Makes all later timetokens greater than this one and the 99 places after it, which events that are not stored can
  /// have.
  package mutating func raise(past timetoken: Int64) {
    raise(to: (Self.clamped(timetoken) / 100 + 1) * 100)
  }

  /// A time that a record says, within the range of timetokens.
  static func clamped(_ time: Int64) -> Int64 { min(max(time, 0), greatest) }
}

/// Decides whether a message is a repetition, the same on every node.
package enum DeduplicationRule {
  /// How long an id is known by default, in units of 100 ns: an hour.
  package static let window: Int64 = 36_000_000_000

  /// - Parameters:
  ///   - earlier: the timetoken of the message that was stored with this id; nil if none was.
  ///   - next: the timetoken that the message would get. No clock of a node decides, as they differ.
  package static func isRepetition(of earlier: Int64?, next: Int64, window: Int64 = window) -> Bool
  {
    guard let earlier else { return false }
    return next - earlier <= window
  }
}
