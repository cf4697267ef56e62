import MessagingQueue
import TestSupport
import Testing

@testable import Realtime

/// A subscriber that polls at any time, and reads the log where it must.
struct RandomSubscriber {
  enum State {
    case idle
    case waiting
    case reading(LogTail, known: Timetoken, Events.Limits)
  }

  let subscription: Subscription
  var state = State.idle
  private var place = ModelLog.start
  private var got: [LiveEvent] = []
  /// Parts of the stream that were read from the log, which has no other events.
  private var readFromLog: [(after: Timetoken, through: Timetoken)] = []

  init(of topics: [String], members: [String], _ random: inout SeededRandom) throws {
    let own = try (0..<1 + random.next(3)).map { _ in try Channel(topics[random.next(topics.count)])
    }
    let group = Set(
      try (0..<2).map { _ in try Channel(members[random.next(members.count)]) })
    subscription = Subscription(
      channels: own, groups: random.oneIn(2) ? [ChannelGroup("g", group)] : [])
  }

  mutating func take(_ events: Events) {
    got += events.events.map(\.event)
    #expect(events.end >= place)
    #expect(events.events.allSatisfy { $0.event.place > place && $0.event.place <= events.end })
    place = events.end
    state = .idle
  }

  /// Polls, or takes what was read from the log since then.
  mutating func step(
    _ id: SubscriberID, _ distributor: inout Distributor, _ log: ModelLog,
    _ random: inout SeededRandom
  ) {
    let before = place
    let answer: Distributor.Answer
    let limits: Events.Limits
    var isFromLog = false
    switch state {
    case .waiting: return
    case .idle:
      limits = Events.Limits(count: 1 + random.next(5), byteCount: 1 + random.next(20))
      answer = distributor.poll(id, subscription, after: place, limits)
    case .reading(let tail, let known, let old):
      limits = old
      answer = distributor.take(tail, for: id, subscription, known: known, limits)
      isFromLog = true
    }
    switch answer {
    case .events(let events):
      take(events)
      // The rest is from the window.
      if isFromLog { readFromLog.append((before, min(place, distributor.window.start))) }
    case .wait:
      if isFromLog { readFromLog.append((before, distributor.window.start)) }
      state = .waiting
    case .readLog(let after, let known):
      if isFromLog { readFromLog.append((before, after)) }
      place = after
      let tail = log.tail(after: after, of: subscription, maximumCount: limits.count)
      state = .reading(tail, known: known, limits)
    }
  }

  func check(_ all: [LiveEvent]) {
    let wanted = all.filter { event in
      event.place <= place && subscription.source(of: event.topics) != nil
        && (event.isStored
          || !readFromLog.contains { $0.after < event.place && event.place <= $0.through })
    }
    // Events from the log and from the window are not the same objects.
    #expect(got.map(\.message) == wanted.map(\.message))
    #expect(got.map(\.isStored) == wanted.map(\.isStored))
  }
}
