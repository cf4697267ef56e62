@testable import MessagingQueue
@testable import Realtime
import TestSupport
import Testing

/// A log that a test writes, and the distribution of it.
struct Log {
  var messages: [LogMessage] = []
  var distributor: Distributor
  var limits: EventWindow.Limits
  static let start = Timetoken(rawValue: 17_000_000_000_000_000)!

  init(limits: EventWindow.Limits = EventWindow.Limits()) {
    self.limits = limits
    distributor = Distributor(EventWindow(at: Self.start, limits))
  }

  var end: Timetoken { messages.last?.timetoken ?? Self.start }

  /// Appends a message to each channel, in one commit.
  mutating func append(_ names: String...) throws -> [(id: SubscriberID, events: Events)] {
    try append(names)
  }

  mutating func append(_ names: [String]) throws -> [(id: SubscriberID, events: Events)] {
    var added: [LogMessage] = []
    for name in names {
      let place = (added.last?.timetoken ?? end).rawValue + 100
      added.append(
        LogMessage(
          timetoken: Timetoken(rawValue: place)!, channel: try Channel(name), payload: [],
          headers: [:], priority: .normal, orderingKey: nil, availabilityTicks: nil,
          expirationTicks: nil))
    }
    messages += added
    return distributor.append(LogTail(messages: added, end: end, isAtEnd: true))
  }

  /// Polls as subscriber `number`; nil if it waits.
  mutating func poll(
    _ number: UInt64, _ subscription: Subscription, after place: Timetoken, count: Int = 100
  ) -> Events? {
    let answer = distributor.poll(
      SubscriberID(number: number), subscription, after: place, maximumCount: count)
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
      groups: try groups.mapValues { Set(try $0.map { try Channel($0) }) })
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
        id, subscription, after: log.messages[0].timetoken, maximumCount: 9)
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

  @Test(arguments: 1...20)
  func `each subscriber gets exactly its messages, in order`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var limits = EventWindow.Limits()
    limits.count = 40
    var log = Log(limits: limits)
    let names = ["s/a", "s/b", "s/a.x", "s/a.y", "s/a.x.z", "s/c", "t/a"]
    let topics = names + ["s/a.*", "s/a.x.*", "t/*"]
    /// What a subscriber wants, its place, what it got, and whether it waits.
    var subscribers: [(Subscription, Timetoken, [LogMessage], Bool)] = try (0..<12).map { _ in
      let own = (0..<Int.random(in: 1...3, using: &random)).map { _ in
        topics.randomElement(using: &random)!
      }
      let members = Set((0..<2).map { _ in names.randomElement(using: &random)! })
      let groups = Bool.random(using: &random) ? ["g": members] : [:]
      return (
        Subscription(
          channels: try own.map { try Channel($0) },
          groups: try groups.mapValues { Set(try $0.map { try Channel($0) }) }),
        Log.start, [], false
      )
    }
    func take(_ index: Int, _ events: Events) {
      subscribers[index].2 += events.events.map(\.message)
      subscribers[index].1 = events.end
    }
    for _ in 0..<200 {
      let commit = (0..<Int.random(in: 1...4, using: &random)).map { _ in
        names.randomElement(using: &random)!
      }
      for woken in try log.append(commit) {
        let index = Int(woken.id.number)
        #expect(subscribers[index].3)
        subscribers[index].3 = false
        take(index, woken.events)
      }
      for index in subscribers.indices where !subscribers[index].3 && Bool.random(using: &random) {
        let (subscription, place, _, _) = subscribers[index]
        let answer = log.distributor.poll(
          SubscriberID(number: UInt64(index)), subscription, after: place,
          maximumCount: Int.random(in: 1...5, using: &random))
        switch answer {
        case .events(let events): take(index, events)
        case .wait: subscribers[index].3 = true
        case .readLog:
          var events = Events(end: log.end)
          for message in log.messages where message.timetoken > place {
            _ = events.append(message, for: subscription, maximumCount: 3)
          }
          take(index, events)
        }
      }
    }
    for (subscription, place, got, _) in subscribers {
      let wanted = log.messages.filter {
        $0.timetoken <= place && subscription.source(of: $0.channel.topics) != nil
      }
      #expect(got == wanted)
    }
  }
}
