import MessagingQueue
import Realtime
import Replication
import ReplicationFixture
import Synchronization
import TestSupport
import Testing

@testable import QueueReplication

/// What a feed has delivered, or polls have ended with.
private final class Received: Sendable {
  private let list = Mutex<[(text: String, place: Timetoken)]>([])

  func take(_ events: some Sequence<LogMessage>) {
    list.withLock { list in
      list += events.map { (String(decoding: $0.payload, as: UTF8.self), $0.timetoken) }
    }
  }

  var texts: [String] { list.withLock { $0.map(\.text) } }
  var last: Timetoken? { list.withLock { $0.last?.place } }
}

/// A subscriber that polls again with the place that it was given, as PubNub's clients do.
private final class PollingSubscriber: Sendable {
  let received = Received()
  private let state: Mutex<(place: Timetoken, pollCount: Int)>

  init(at place: Timetoken) { state = Mutex((place, 0)) }

  var place: Timetoken { state.withLock { $0.place } }
  var pollCount: Int { state.withLock { $0.pollCount } }

  func poll(_ realtime: Realtime) {
    let place = state.withLock { state in
      state.pollCount += 1
      return state.place
    }
    realtime.poll(Subscription(channels: [.shop]), after: place) { [self] result in
      guard case .success(let events) = result else { return }
      received.take(events.events.map(\.message))
      state.withLock { $0.place = events.end }
      // As over a network.
      Task {
        try await Task.sleep(for: .milliseconds(2))
        poll(realtime)
      }
    }
  }
}

/// Live subscribers of a node whose brokers forget, as `docs/explanation/replication.md` says under "Undoing".
@Suite(.timeLimit(.minutes(10))) struct UndoneLogTests {
  /// Runs `body` after a node has read "lost", which the brokers forgot, so that "other" and "later" came before it.
  ///
  /// - Parameter before: before that.
  private func whileForgetting(
    _ before: (TestNode, Realtime) async throws -> Void,
    _ body: (TestNode, Realtime, _ lost: Timetoken) async throws -> Void
  ) async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1) { $0.syncInterval = .seconds(300) }
    let b = try await TestNode(shard, member: 2) { $0.syncInterval = .seconds(300) }
    try await a.engine.publish(Message(shop: "first"))
    try await eventually("both have it") { try await b.texts(of: .shop) == ["first"] }
    let realtime = try await Realtime(a.engine)
    let running = Task { try await realtime.run() }
    try await before(a, realtime)

    // Its time is earlier than that of "lost": it gets a place before it.
    b.log.setCutOff(true)
    try await b.engine.post([Message(shop: "other")])
    let count = shard.log.count
    let lost = try await a.engine.publish(Message(shop: "lost"))
    try await eventually("it is distributed") { realtime.place >= lost }
    shard.log.setDown(true)
    shard.log.forget(shard.log.count - count)
    a.log.setCutOff(true)
    shard.log.setDown(false)
    b.log.setCutOff(false)
    try await b.engine.publish(Message(shop: "later"))
    try await eventually("the other has them") {
      try await b.texts(of: .shop) == ["first", "other", "later"]
    }
    a.log.setCutOff(false)
    try await eventually("both have the same") {
      try await a.texts(of: .shop) == ["first", "other", "later", "lost"]
    }
    try await body(a, realtime, lost)
    running.cancel()
    _ = await running.result
    await a.stop()
    await b.stop()
  }

  @Test func `a feed gets the messages that took the places of undone ones`() async throws {
    let received = Received()
    let feed = Mutex<LiveFeed?>(nil)
    try await whileForgetting { _, realtime in
      let new = LiveFeed(realtime) { received.take($0.map(\.message)) }
      new.add(.shop)
      feed.withLock { $0 = new }
    } _: { _, _, _ in
      try await eventually("the feed has all") { received.texts.count == 4 }
    }
    #expect(received.texts == ["lost", "other", "later", "lost"])
    feed.withLock { $0 }?.end()
  }

  @Test func `a subscriber that waits gets them too, and each no more than twice`() async throws {
    let subscriber = Mutex<PollingSubscriber?>(nil)
    try await whileForgetting { _, realtime in
      let new = PollingSubscriber(at: realtime.place)
      new.poll(realtime)
      subscriber.withLock { $0 = new }
    } _: { a, realtime, _ in
      let subscriber = try #require(subscriber.withLock { $0 })
      try await a.engine.publish(Message(shop: "end"))
      try await eventually("the subscriber has all") { subscriber.received.texts.last == "end" }
      for text in ["other", "later", "lost"] {
        #expect((1...4).contains(subscriber.received.texts.count { $0 == text }))
      }
    }
  }

  @Test func `a stored place in the undone range continues at its beginning`() async throws {
    try await whileForgetting { _, _ in
    } _: { _, realtime, lost in
      let subscriber = PollingSubscriber(at: lost)
      subscriber.poll(realtime)
      try await eventually("the subscriber has all") {
        Set(subscriber.received.texts) == ["other", "later", "lost"]
      }
    }
  }

  @Test func `a subscriber that waits in a range when its repair comes reads the range again`()
    async throws
  {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let realtime = try await Realtime(node.engine)
    let running = Task { try await realtime.run() }
    let place = try await node.engine.publish(Message(shop: "one"))
    let subscriber = PollingSubscriber(at: place)
    subscriber.poll(realtime)
    try await eventually("it waits") { realtime.waitingCount == 1 }
    try await node.node.write([.repair(from: place.rawValue - 100, to: place.rawValue + 250)])
    try await eventually("it has the range") { subscriber.received.texts == ["one"] }
    running.cancel()
    _ = await running.result
    await node.stop()
  }

  @Test func `a place that another node has undone is read again once, though nothing follows`()
    async throws
  {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let realtime = try await Realtime(node.engine)
    let running = Task { try await realtime.run() }
    let place = try await node.engine.publish(Message(shop: "one"))
    let through = place.rawValue + 250
    try await node.node.write([.repair(from: place.rawValue - 100, to: through)])
    try await eventually("the end of the log is behind the range") {
      realtime.place.rawValue > through
    }
    let subscriber = PollingSubscriber(at: place)
    subscriber.poll(realtime)
    try await eventually("it waits behind the range") { subscriber.place.rawValue > through }
    try await eventually("it polls again") { subscriber.pollCount == 2 }
    // The next message ends this poll, and no other one was between.
    try await node.engine.publish(Message(shop: "two"))
    try await eventually("the next message") { subscriber.received.texts.last == "two" }
    #expect(subscriber.received.texts == ["one", "two"])
    #expect(subscriber.pollCount <= 3)
    running.cancel()
    _ = await running.result
    await node.stop()
  }
}

extension Channel {
  fileprivate static var shop: Channel {
    guard let channel = try? Channel("shop/orders") else { preconditionFailure("a valid name") }
    return channel
  }
}

extension Message {
  fileprivate init(shop text: String) {
    self.init(channel: .shop, payload: Array(text.utf8))
  }
}
