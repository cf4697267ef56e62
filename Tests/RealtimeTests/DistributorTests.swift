import MessagingQueue
import TestSupport
import Testing

@testable import Realtime

/// A log that a test writes, and the distribution of it.
struct Log {
  var model = ModelLog()
  var distributor: Distributor
  static let start = ModelLog.start

  init(limits: EventWindow.Limits = EventWindow.Limits()) {
    distributor = Distributor(EventWindow(at: Self.start, limits))
  }

  var messages: [LogMessage] { model.messages }
  var end: Timetoken { distributor.window.end }

  /// Appends a message to each channel, in one commit.
  mutating func append(_ names: String...) throws -> [(id: SubscriberID, events: Events)] {
    try append(names)
  }

  mutating func append(_ names: [String]) throws -> [(id: SubscriberID, events: Events)] {
    try model.commit(names)
    return distributor.take(model.tail(after: distributor.readPlace)).woken
  }

  /// Sends events that are not stored, each with its channel's name.
  mutating func send(_ names: String...) throws -> [(id: SubscriberID, events: Events)] {
    let messages = try names.map {
      Message(channel: try Channel($0), payload: Array($0.utf8))
    }
    if let distribution = try distributor.send(messages, as: 1, now: model.now) {
      return distribution.woken
    }
    distributor.reserve(model.reserve(1000))
    return distributor.take(model.tail(after: distributor.readPlace)).woken
  }

  /// Polls as subscriber `number`; nil if it waits.
  mutating func poll(
    _ number: UInt64, _ subscription: Subscription, after place: Timetoken, count: Int = 100,
    byteCount: Int = 1 << 20
  ) -> Events? {
    let answer = distributor.poll(
      SubscriberID(number: number), subscription, after: place,
      Events.Limits(count: count, byteCount: byteCount))
    guard case .events(let events) = answer else { return nil }
    return events
  }

  /// Has a subscriber wait, by default at the end of the log.
  mutating func wait(
    _ number: UInt64, _ names: String..., after place: Timetoken? = nil, count: Int = 100
  ) throws {
    let subscription = Subscription(channels: try names.map { try Channel($0) })
    let events = poll(number, subscription, after: place ?? end, count: count)
    #expect(events == nil)
  }
}

extension Subscription {
  init(_ names: String..., groups: [String: Set<String>] = [:]) throws {
    self.init(
      channels: try names.map { try Channel($0) },
      groups: try groups.map { ChannelGroup($0, Set(try $1.map { try Channel($0) })) })
  }
}

extension Events {
  var names: [String] { events.map(\.message.channel.name) }
}

@Suite struct DistributorTests {
  @Test func `a subscriber gets the messages after its place, and the place to go on from`()
    throws
  {
    var log = Log()
    _ = try log.append("s/a", "s/b", "s/a")
    let all = try log.poll(1, Subscription("s/a"), after: Log.start)
    let first = try #require(all)
    #expect(first.names == ["s/a", "s/a"] && first.end == log.end)
    let none = try log.poll(1, Subscription("s/a"), after: first.end)
    #expect(none == nil)
    let rest = try log.poll(2, Subscription("s/a"), after: log.messages[0].timetoken)
    #expect(rest?.events.map(\.message) == [log.messages[2]])
  }

  @Test func `a waiting subscriber gets the next commit, once, with all its messages`() throws {
    var log = Log()
    try log.wait(1, "s/a", "s/b")
    try log.wait(2, "s/c")
    let woken = try log.append("s/a", "s/x", "s/b")
    #expect(woken.map(\.id.number) == [1])
    #expect(woken.first?.events.names == ["s/a", "s/b"])
    #expect(woken.first?.events.end == log.end)
    let later = try log.append("s/a")
    #expect(later.isEmpty && log.distributor.waitingCount == 1)
  }

  @Test func `a subscriber whose place is ahead of the log gets nothing from before it`() throws {
    var log = Log()
    let ahead = Timetoken(rawValue: Log.start.rawValue + 150)!
    try log.wait(1, "s/a", after: ahead)
    let before = try log.append("s/a")
    #expect(before.isEmpty)
    let after = try log.append("s/a")
    #expect(after.map(\.events.names) == [["s/a"]])
  }

  @Test func `an answer has at most as many messages as asked for, and loses none`() throws {
    var log = Log()
    _ = try log.append((0..<25).map { "s/\($0 % 2)" })
    var (place, found) = (Log.start, [Timetoken]())
    let subscription = try Subscription("s/0", "s/1")
    while let events = log.poll(1, subscription, after: place, count: 10) {
      found += events.events.map(\.message.timetoken)
      place = events.end
    }
    #expect(found == log.messages.map(\.timetoken))
    try log.wait(2, "s/0", count: 2)
    let woken = try log.append("s/0", "s/0", "s/0")
    let cut = try #require(woken.first { $0.id.number == 2 }?.events)
    #expect(cut.events.count == 2 && cut.end == cut.events[1].message.timetoken)
  }

  @Test func `a pattern matches names below it, and a group its members`() throws {
    var log = Log()
    _ = try log.append("s/a.x", "s/a", "s/a.x.y", "s/ab.x", "t/a.x", "s/b", "s/c")
    let subscription = try Subscription("s/a.*", groups: ["g": ["s/b", "s/a.x"]])
    let found = log.poll(1, subscription, after: Log.start)
    let events = try #require(found)
    #expect(events.names == ["s/a.x", "s/a.x.y", "s/b"])
    let pattern = try Channel("s/a.*")
    #expect(
      events.events.map(\.source) == [.pattern(pattern), .pattern(pattern), .group("g")])
    let both = try Subscription("s/a.x", "s/a.*", groups: ["g": ["s/a.x"]])
    let first = log.poll(2, both, after: Log.start)
    #expect(first?.events.map(\.source) == [.channel, .pattern(pattern)])
    let deep = log.poll(3, try Subscription("s/a.x.*"), after: Log.start)
    #expect(deep?.names == ["s/a.x.y"])
    let grouped = try Subscription("s/a.*", groups: ["h": ["s/b", "s/a.x"], "g": ["s/b"]])
    let sources = log.poll(4, grouped, after: Log.start)?.events.map(\.source)
    #expect(sources == [.pattern(pattern), .pattern(pattern), .group("g")])
  }

  @Test func `a turn is 64 short calls of an application, or a long one`() {
    var queue = TurnQueue()
    for _ in 0..<100 { queue.append({}, of: "a") }
    for _ in 0..<2 { queue.append({}, isLong: true, of: "a") }
    queue.append({}, of: "b")
    var counts: [Int] = []
    while !queue.isEmpty { counts.append(queue.next().count) }
    #expect(counts == [64, 1, 1, 36, 1])
    #expect(queue.next().isEmpty)
  }

  @Test func `subscribers of a group wait under the group, and leave nothing behind`() throws {
    let group = ChannelGroup("g", Set(try (0..<100).map { try Channel("s/\($0)") }))
    let other = ChannelGroup("h", [try Channel("s/0")])
    let channels = [try Channel("s/1")]
    var list = WaitingList()
    let (a, b) = (
      Subscription(channels: channels, groups: [other, group]),
      Subscription(channels: [], groups: [group])
    )
    list.insert(SubscriberID(number: 1), a)
    list.insert(SubscriberID(number: 2), b)
    // A channel, the channels of two groups, and the two groups.
    #expect(list.entryCount == 1 + 100 + 1 + 3)
    func sources(_ name: String) throws -> [UInt64: [Subscription.Source]] {
      var found: [UInt64: [Subscription.Source]] = [:]
      list.forEach([try Channel(name)]) { found[$0.number, default: []].append($1) }
      return found
    }
    #expect(try sources("s/0") == [1: [.group("g"), .group("h")], 2: [.group("g")]])
    #expect(try sources("s/1") == [1: [.channel, .group("g")], 2: [.group("g")]])
    list.remove(SubscriberID(number: 2), b)
    #expect(try sources("s/0") == [1: [.group("g"), .group("h")]])
    list.remove(SubscriberID(number: 1), a)
    #expect(list.entryCount == 0)
  }

  @Test func `presence is found under the patterns of presence alone`() throws {
    var log = Log()
    let names = [
      "s/w.a-pnpres", "s/w.b.c-pnpres", "s/w.*-pnpres", "s/w.a", "s/w-pnpres", "s/x.a-pnpres",
      "s/w.b.*-pnpres",
    ]
    for name in names { _ = try log.send(name) }
    let messages = log.poll(1, try Subscription("s/w.*"), after: Log.start)
    #expect(messages?.names == ["s/w.a"])
    let presence = log.poll(2, try Subscription("s/w.*-pnpres"), after: Log.start)
    #expect(presence?.names == [names[0], names[1], names[2], names[6]])
    let pattern = try Channel("s/w.*-pnpres")
    #expect(presence?.events.allSatisfy { $0.source == .pattern(pattern) } == true)
    let deep = log.poll(3, try Subscription("s/w.b.*-pnpres"), after: Log.start)
    #expect(deep?.names == [names[1], names[6]])
    let group = try Subscription(
      "s/w.a", groups: ["g": ["s/w.a", "s/w"], "g-pnpres": ["s/w.a-pnpres", "s/w-pnpres"]])
    let both = log.poll(4, group, after: Log.start)
    #expect(both?.names == [names[0], names[3], names[4]])
    #expect(both?.events.map(\.source) == [.group("g-pnpres"), .channel, .group("g-pnpres")])
  }

  @Test func `presence is not looked for in the log`() throws {
    let subscription = try Subscription(
      "s/a", "s/a-pnpres", "s/b.*", "s/b.*-pnpres", groups: ["g-pnpres": ["s/c-pnpres"]])
    let a = try Channel("s/a")
    #expect(subscription.selection == ChannelSelection(channels: [a], prefixes: ["s/b."]))
  }

  @Test func `events that are not stored come between the messages, and say so`() throws {
    var log = Log()
    try log.wait(1, "s/a")
    let first = try log.send("s/a")
    #expect(first.map(\.events.names) == [["s/a"]])
    #expect(first.first?.events.events.map(\.isStored) == [false])
    _ = try log.append("s/a")
    _ = try log.send("s/a", "s/b")
    _ = try log.append("s/a", "plain")
    let all = log.poll(2, try Subscription("s/a"), after: Log.start)
    #expect(all?.events.map(\.isStored) == [false, true, false, true])
    let places = try #require(all).events.map(\.message.timetoken)
    #expect(places == places.sorted() && Set(places).count == 4)
    let rest = log.poll(3, try Subscription("s/a"), after: places[1])
    #expect(rest?.events.map(\.message.timetoken) == Array(places[2...]))
  }

  @Test func `an answer has at most as many bytes as asked for, and at least one event`() throws {
    var log = Log()
    for _ in 0..<7 { _ = try log.send("s/a") }
    var (place, counts) = (Log.start, [Int]())
    let subscription = try Subscription("s/a")
    while let events = log.poll(1, subscription, after: place, byteCount: 8) {
      counts.append(events.events.count)
      place = events.end
    }
    #expect(counts == [2, 2, 2, 1])
    let one = log.poll(2, subscription, after: Log.start, byteCount: 1)
    #expect(one?.events.count == 1)
    try log.wait(3, "s/a")
    let woken = try log.send("s/a", "s/a")
    #expect(woken.first { $0.id.number == 3 }?.events.events.count == 2)
  }

  @Test func `a subscriber from before the window has to read the log`() throws {
    var limits = EventWindow.Limits()
    limits.count = 3
    var log = Log(limits: limits)
    _ = try log.append("s/a", "s/a", "s/b", "s/a", "s/a")
    let id = SubscriberID(number: 1)
    let subscription = try Subscription("s/a")
    guard
      case .readLog = log.distributor.poll(
        id, subscription, after: log.messages[0].timetoken, Events.Limits())
    else {
      Issue.record("an answer without the message that left the window")
      return
    }
    let rest = log.poll(1, subscription, after: log.messages[1].timetoken)
    #expect(rest?.events.map(\.message) == Array(log.messages[3...]))
  }

  @Test func `a subscriber that is removed gets nothing, and leaves nothing`() throws {
    var log = Log()
    try log.wait(1, "s/a")
    log.distributor.remove(SubscriberID(number: 1))
    let woken = try log.append("s/a")
    #expect(woken.isEmpty && log.distributor.waitingCount == 0)
  }

  @Test(arguments: 1...30)
  func `each subscriber gets exactly its events, in order`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var limits = EventWindow.Limits()
    limits.count = 40
    var log = ModelLog()
    var run = ModelRun()
    // A batch has room in the window.
    var waitingLimits = EphemeralPlaces.Limits()
    waitingLimits.count = 20
    var distributor = Distributor(EventWindow(at: ModelLog.start, limits), waitingLimits)
    let names = ["s/a", "s/b", "s/a.x", "s/a.y", "s/a.x.z", "s/c", "t/a"]
    let presences = ["s/a-pnpres", "s/a.x-pnpres", "s/a.*-pnpres", "s/a.x.*-pnpres"]
    let topics = names + presences + ["s/a.*", "s/a.x.*", "t/*"]
    var subscribers = try (0..<12).map { _ in
      try RandomSubscriber(of: topics, members: names + presences, &random)
    }
    /// All events that were given out.
    var all: [LiveEvent] = []

    func take(_ distribution: Distributor.Distribution) {
      for (id, events) in distribution.woken {
        let index = Int(id.number)
        guard case .waiting = subscribers[index].state else {
          Issue.record("a subscriber is woken that does not wait")
          continue
        }
        subscribers[index].take(events)
      }
    }
    /// Notes the events of a batch, which any subscriber to all topics would get.
    func note(after place: Timetoken) throws {
      let everything = Subscription(channels: try topics.map { try Channel($0) })
      let batch = distributor.window.events(
        for: everything, after: place, Events.Limits(count: .max - 1, byteCount: .max))
      all += batch?.events.map(\.event) ?? []
    }

    for step in 0..<1000 {
      let end = distributor.window.end
      switch random.next(8) {
      case 0:
        try log.commit((0..<1 + random.next(3)).map { _ in (names + ["plain"])[random.next(8)] })
      case 1:
        let messages = try (0..<1 + random.next(3)).map { index in
          try Message(
            event: step * 10 + index, to: (names + presences)[random.next(names.count + 4)])
        }
        let id = UInt64(step)
        if let distribution = try? distributor.send(messages, as: id, now: log.now) {
          take(distribution)
        }
      case 2: log.now += Int64([1, 99, 10_000, 20_000_000, -50_000][random.next(5)])
      case 3, 4:
        let effect = run.next(
          &log, needsReservation: distributor.needsReservation, readPlace: distributor.readPlace,
          pageCount: 1 + random.next(6), &random)
        switch effect {
        case .none: break
        case .fail: _ = distributor.failWaiting()
        case .reserve(let range): distributor.reserve(range)
        case .take(let tail): take(distributor.take(tail))
        }
      default:
        let index = random.next(subscribers.count)
        subscribers[index].step(SubscriberID(number: UInt64(index)), &distributor, log, &random)
      }
      try note(after: end)
    }
    for subscriber in subscribers { subscriber.check(all) }
  }
}
