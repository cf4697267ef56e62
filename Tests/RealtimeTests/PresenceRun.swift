import MessagingQueue
import TestSupport

@testable import Realtime

/// A presence with a clock and arrival numbers of its own, for one application unless a call names another.
struct PresenceRun {
  static let start = ContinuousClock.now
  static let unixSeconds = 1_700_000_000

  var presence: Presence
  var now = start
  var arrival: UInt64 = 0
  var application = "shop"

  init(_ change: (inout PresenceLimits) -> Void = { _ in }) {
    var limits = PresenceLimits()
    change(&limits)
    presence = Presence(limits)
  }

  var time: PresenceTime {
    PresenceTime(
      now, unixSeconds: Self.unixSeconds + Int((now - Self.start).components.seconds))
  }

  static func channel(_ name: String) -> Channel {
    do { return try Channel(name) } catch { preconditionFailure("\(error)") }
  }

  private func channels(_ names: [String]) -> [Channel] {
    names.map { Self.channel("\(application)/\($0)") }
  }

  private mutating func next(_ given: UInt64?) -> UInt64 {
    if let given { return given }
    arrival += 1
    return arrival
  }

  mutating func join(
    _ user: String, _ names: String..., state: [String: String] = [:], timeout: Int? = nil,
    arrival given: UInt64? = nil
  ) throws -> [String] {
    try join(user, names, state: state, timeout: timeout, arrival: given)
  }

  mutating func join(
    _ user: String, _ names: [String], state: [String: String] = [:], timeout: Int? = nil,
    arrival given: UInt64? = nil
  ) throws -> [String] {
    let number = next(given)
    let states = state.map { (channels([$0.key])[0], Array($0.value.utf8)) }
    return try presence.join(
      UserID(user), of: application, on: channels(names),
      state: Dictionary(uniqueKeysWithValues: states), timeout: timeout.map { .seconds($0) },
      arrival: number, at: time
    ).map(\.text)
  }

  mutating func leave(_ user: String, _ names: String..., arrival given: UInt64? = nil) -> [String]
  {
    let number = next(given)
    return presence.leave(
      UserID(user), of: application, on: channels(names), arrival: number, at: time
    ).map(\.text)
  }

  mutating func setState(
    _ state: String, _ user: String, _ names: String..., arrival given: UInt64? = nil
  ) throws -> [String] {
    let number = next(given)
    return try presence.setState(
      Array(state.utf8), of: UserID(user), of: application, on: channels(names),
      arrival: number, at: time
    ).map(\.text)
  }

  /// Lets time pass, and ends what has ended.
  mutating func pass(_ seconds: Int) -> [String] {
    now += .seconds(seconds)
    return presence.expire(at: time).map(\.text)
  }

  func users(_ name: String) -> [String] {
    presence.users(of: channels([name])[0], of: application).map { user, state in
      user.text + (state.map { " \(String(decoding: $0, as: UTF8.self))" } ?? "")
    }
  }

  func occupancy(_ name: String) -> Int {
    presence.occupancy(of: channels([name])[0], of: application)
  }

  func whereNow(_ user: String) -> [String] {
    presence.channels(of: UserID(user), of: application).map(\.name)
  }
}

extension PresenceEvent {
  /// `action user channel occupancy`, and the state: short enough for a list of expected events.
  var text: String {
    switch content {
    case .change(let action, let user, let state):
      "\(action) \(user) \(channel) \(occupancy)"
        + (state.map { " \(String(decoding: $0, as: UTF8.self))" } ?? "")
    case .interval(let interval):
      "interval \(channel) \(occupancy)"
        + (interval.joined.isEmpty ? "" : " +\(interval.joined)")
        + (interval.left.isEmpty ? "" : " -\(interval.left)")
        + (interval.timedOut.isEmpty ? "" : " !\(interval.timedOut)")
        + (interval.isIncomplete ? " ask" : "")
    }
  }
}
