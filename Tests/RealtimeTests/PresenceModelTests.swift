import MessagingQueue
import TestSupport
import Testing

@testable import Realtime

/// Random calls, out of order and within narrow bounds: the presence must do what the model does.
@Suite struct PresenceModelTests {
  private static let names = ["a", "b", "w.*", "a-pnpres", "\u{E9}"]
  private static let users = ["ana", "bob", "cid", "dan", "eve", "\u{E9}", "e\u{301}"].map {
    UserID($0)
  }
  private static let applications = ["shop", "bank"]

  private enum Outcome: Equatable {
    case events([PresenceEvent])
    case refused(PresenceRefusal)

    init(_ call: () throws(PresenceRefusal) -> [PresenceEvent]) {
      do throws(PresenceRefusal) { self = .events(try call()) } catch { self = .refused(error) }
    }
  }

  private struct Run {
    var random: SeededRandom
    var presence: Presence
    var model: PresenceModel
    var now = PresenceTime(PresenceRun.start, unixSeconds: 0)
    var arrivals: [UInt64] = []
    var lastArrival: UInt64 = 0
    /// How often each outcome came.
    var counts: [String: Int] = [:]

    init(seed: UInt64) {
      random = SeededRandom(seed: seed)
      var limits = PresenceLimits()
      limits.maximumUserCount = 4 + random.next(4)
      limits.maximumChannelCount = 3
      limits.maximumPresenceCount = 6 + random.next(8)
      limits.maximumStateByteCount = 3
      limits.maximumTotalStateByteCount = 8
      limits.announceMaximum = random.next(5)
      limits.announcesUsers = !random.oneIn(4)
      limits.maximumAnnouncedCount = 1 + random.next(3)
      presence = Presence(limits)
      model = PresenceModel(limits: limits)
    }

    /// One of the next four arrival numbers, each of them once.
    mutating func arrival() -> UInt64 {
      while arrivals.count < 4 {
        lastArrival += 1
        arrivals.append(lastArrival)
      }
      return arrivals.remove(at: random.next(arrivals.count))
    }

    mutating func channels(_ application: String) -> [Channel] {
      (0..<random.next(4)).map { _ in
        PresenceRun.channel("\(application)/\(PresenceModelTests.names[random.next(5)])")
      }
    }

    mutating func state() -> [UInt8] {
      Array(repeating: UInt8(ascii: "0") + UInt8(random.next(2)), count: random.next(5))
    }

    mutating func pass() {
      let seconds = [0, 0, 0, 0, 1, 1, 2, 5, 9, 30][random.next(10)]
      now = PresenceTime(now.instant + .seconds(seconds), unixSeconds: now.unixSeconds + seconds)
    }

    mutating func note(_ outcome: Outcome) {
      guard case .events(let events) = outcome else { return counts["\(outcome)", default: 0] += 1 }
      for event in events {
        switch event.content {
        case .change(let action, _, _): counts["\(action)", default: 0] += 1
        case .interval(let interval):
          counts[interval.isIncomplete ? "incomplete" : "interval", default: 0] += 1
        }
      }
    }
  }

  @Test func `presence does what the model does`() throws {
    var counts: [String: Int] = [:]
    for seed in 0..<30 as Range<UInt64> {
      var run = Run(seed: 0x9E5E_4CE + seed)
      for step in 0..<250 {
        try change(&run, "seed \(seed), step \(step)")
        try compare(&run, "seed \(seed), step \(step)")
      }
      counts.merge(run.counts) { $0 + $1 }
    }
    // Every outcome comes often enough to show something.
    #expect(counts.count == 11 && counts.values.allSatisfy { $0 > 30 }, "\(counts)")
  }

  private func change(_ run: inout Run, _ place: Comment) throws {
    let application = Self.applications[run.random.next(2)]
    let user = Self.users[run.random.next(Self.users.count)]
    let channels = run.channels(application)
    let arrival = run.arrival()
    run.pass()
    let now = run.now
    let (outcome, expected): (Outcome, Outcome)
    switch run.random.next(12) {
    case 0...5:
      var states: [Channel: [UInt8]] = [:]
      for channel in channels where run.random.oneIn(2) { states[channel] = run.state() }
      let timeout = [nil, nil, 0, 8, 20, 60, 100_000][run.random.next(7)].map {
        Duration.seconds($0)
      }
      outcome = Outcome { () throws(PresenceRefusal) in
        try run.presence.join(
          user, of: application, on: channels, state: states, timeout: timeout, arrival: arrival,
          at: now)
      }
      expected = Outcome { () throws(PresenceRefusal) in
        try run.model.join(
          user, of: application, on: channels, state: states, timeout: timeout, arrival: arrival,
          at: now)
      }
    case 6...7:
      outcome = .events(
        run.presence.leave(user, of: application, on: channels, arrival: arrival, at: now))
      expected = .events(
        run.model.leave(user, of: application, on: channels, arrival: arrival, at: now))
    case 8...9:
      let state = run.state()
      outcome = Outcome { () throws(PresenceRefusal) in
        try run.presence.setState(
          state, of: user, of: application, on: channels, arrival: arrival, at: now)
      }
      expected = Outcome { () throws(PresenceRefusal) in
        try run.model.setState(
          state, of: user, of: application, on: channels, arrival: arrival, at: now)
      }
    default:
      outcome = .events(run.presence.expire(at: now))
      expected = .events(run.model.expire(at: now))
    }
    run.note(outcome)
    try #require(outcome == expected, place)
  }

  private func compare(_ run: inout Run, _ place: Comment) throws {
    // Expiring before the next deadline ends nothing, so the deadline must not be too late.
    if let first = run.model.deadlines.min() {
      let next = try #require(run.presence.nextDeadline, place)
      try #require(next <= first, place)
    }
    for application in Self.applications {
      let rows = run.model.rows.filter { $0.application == application }
      try #require(
        Set(run.presence.channels(of: application)) == Set(rows.map(\.channel)), place)
      for name in Self.names {
        let channel = PresenceRun.channel("\(application)/\(name)")
        let expected = rows.filter { $0.channel == channel }
        let found = run.presence.users(of: channel, of: application)
        try #require(found.map(\.user) == expected.map(\.user), place)
        try #require(found.map(\.state) == expected.map(\.state), place)
        try #require(run.presence.occupancy(of: channel, of: application) == expected.count, place)
      }
      for user in Self.users {
        let own = rows.filter { $0.user == user }
        let channels = run.presence.channels(of: user, of: application)
        try #require(channels == own.map(\.channel).sorted { $0.name < $1.name }, place)
        let states = run.presence.states(of: user, of: application, on: channels)
        try #require(
          states == own.reduce(into: [:]) { $0[$1.channel] = $1.state }, place)
      }
    }
  }
}
