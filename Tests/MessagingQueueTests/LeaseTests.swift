import FileLayer
import FileRecording
import MessagingQueue
import QueueFixture
import Testing

@Suite struct LeaseTests {
  let channel = Channel.orders
  let engine: PlainEngine
  var database: TestQueue { engine.database }

  init() throws {
    engine = try PlainEngine()
    try engine.database.publish(["a", "b", "c"], to: channel)
  }

  @Test func `a leased message goes to no other receiver`() throws {
    #expect(try database.receive(2, from: channel).map(\.text) == ["a", "b"])
    #expect(try engine.secondDatabase().receive(9, from: channel).map(\.text) == ["c"])
    #expect(try database.receive(9, from: channel).isEmpty)
  }

  @Test func `a consumer that received before the first message misses none`() throws {
    let later = try Channel("later")
    let second = try Consumer("second")
    #expect(try database.receive(1, from: later, for: second).isEmpty)
    try database.publish(["a"], to: later)
    try database.acknowledge(database.receive(1, from: later).map(\.token))
    #expect(try database.receive(1, from: later, for: second).map(\.text) == ["a"])
  }

  @Test func `a message whose lease has ended is delivered again first`() throws {
    _ = try database.receive(1, from: channel)
    engine.time.advance(by: .seconds(29))
    #expect(try database.receive(1, from: channel).map(\.text) == ["b"])
    engine.time.advance(by: .seconds(1))
    let again = try database.receive(9, from: channel)
    #expect(again.map(\.text) == ["a", "c"])
    #expect(again.map(\.attempt) == [2, 1])
  }

  @Test func `an acknowledged message leaves the log`() throws {
    let deliveries = try database.receive(3, from: channel)
    try database.acknowledge(deliveries.map(\.token))
    engine.time.advance(by: .seconds(60))
    #expect(try database.receive(9, from: channel).isEmpty)
    #expect(try engine.number("SELECT count(*) FROM message") == 0)
  }

  @Test func `a late worker cannot acknowledge a message that is leased again`() throws {
    let late = try database.receive(1, from: channel)[0]
    engine.time.advance(by: .seconds(31))
    let other = try database.receive(1, from: channel)[0]
    #expect(late.timetoken == other.timetoken)
    #expect(code { try database.acknowledge([late.token]) } == .unknownLease)
    #expect(code { try database.release([late.token]) } == .unknownLease)
    try database.acknowledge([other.token])
  }

  @Test func `a late worker can acknowledge a message that no other worker has received`() throws {
    let late = try database.receive(1, from: channel)[0]
    engine.time.advance(by: .seconds(3600))
    try database.acknowledge([late.token])
    #expect(try database.receive(9, from: channel).map(\.text) == ["b", "c"])
  }

  @Test func `a full receive leaves later messages to their late worker`() throws {
    var message = Message(channel: channel, payload: Array("d".utf8))
    message.timeToLive = .seconds(40)
    _ = try database.publish([message])
    let late = try database.receive(9, from: channel)
    engine.time.advance(by: .seconds(50))
    #expect(try database.receive(1, from: channel).map(\.text) == ["a"])
    try database.acknowledge([late[3].token])
  }

  @Test
  func `a late worker can settle an expired message until its key's turn`()
    throws
  {
    var (first, second) = (
      Message(channel: try Channel("keyed"), payload: Array("first".utf8)),
      Message(channel: try Channel("keyed"), payload: Array("second".utf8))
    )
    (first.orderingKey, second.orderingKey) = ("key", "key")
    second.timeToLive = .seconds(40)
    _ = try database.publish([first, second])
    // The second is leased while the first is delayed, and its lease ends before the first is
    // ready.
    try database.release(
      try database.receive(9, from: first.channel).map(\.token), after: .seconds(10))
    let late = try database.receive(9, from: first.channel)
    #expect(late.map(\.text) == ["second"])
    engine.time.advance(by: .seconds(35))
    #expect(try database.receive(1, from: first.channel).map(\.text) == ["first"])
    engine.time.advance(by: .seconds(10))
    #expect(try database.receive(9, from: first.channel).isEmpty)
    try database.acknowledge(late.map(\.token))
  }

  @Test func `a token settles its delivery once`() throws {
    let token = try database.receive(1, from: channel)[0].token
    try database.acknowledge([token])
    #expect(code { try database.acknowledge([token]) } == .unknownLease)
  }

  @Test func `valid tokens are settled beside an invalid one`() throws {
    let deliveries = try database.receive(3, from: channel)
    try database.release([deliveries[1].token])
    let error = #expect(throws: EngineError.self) {
      try database.acknowledge(deliveries.map(\.token))
    }
    #expect(error?.code == .unknownLease)
    #expect(error?.unknownLeases == [deliveries[1].token])
    #expect(try database.receive(9, from: channel).map(\.text) == ["b"])
  }

  @Test func `a token with one changed digit settles nothing`() throws {
    let token = try database.receive(1, from: channel)[0].token
    let text = token.description
    let forged = String(text.dropLast()) + (text.last == "0" ? "1" : "0")
    #expect(LeaseToken(text) == token)
    let other = try #require(LeaseToken(forged))
    #expect(code { try database.acknowledge([other]) } == .unknownLease)
    try database.acknowledge([token])
  }

  @Test func `every delivery has a secret of its own`() throws {
    let deliveries = try database.receive(3, from: channel)
    let secrets = Set(deliveries.map { $0.token.description.suffix(32) })
    #expect(secrets.count == 3)
  }

  @Test func `a released message returns immediately to its place in the order`() throws {
    let deliveries = try database.receive(2, from: channel)
    try database.release(deliveries.map(\.token))
    #expect(try database.receive(9, from: channel).map(\.text) == ["a", "b", "c"])
  }

  @Test func `an attempt that does not count makes no dead letter`() throws {
    try database.addConsumer(.default, of: channel, maximumAttempts: 1)
    for _ in 0..<2 {
      let delivery = try database.receive(1, from: channel)[0]
      #expect(delivery.text == "a" && delivery.attempt == 1)
      try database.release([delivery.token], countsAttempt: false)
    }
    let last = try database.receive(1, from: channel)[0]
    try database.release([last.token], reason: "broken")
    let dead = try engine.number("SELECT json_array_length(failures) FROM dead_letter")
    #expect(dead == 1)
  }

  @Test func `a message released with a delay returns after the delay`() throws {
    let delivery = try database.receive(1, from: channel)[0]
    try database.release([delivery.token], after: .seconds(10))
    #expect(try database.receive(9, from: channel).map(\.text) == ["b", "c"])
    engine.time.advance(by: .seconds(9))
    #expect(try database.receive(9, from: channel).isEmpty)
    engine.time.advance(by: .seconds(1))
    #expect(try database.receive(9, from: channel).map(\.text) == ["a"])
  }

  @Test func `leases and delays end at a reboot`() throws {
    let deliveries = try database.receive(2, from: channel)
    try database.release([deliveries[0].token], after: .seconds(500))
    engine.time.reboot(as: "boot-2")
    #expect(try engine.secondDatabase().receive(9, from: channel).map(\.text) == ["a", "b", "c"])
  }

  @Test func `a jump of the wall clock neither ends nor extends a lease`() throws {
    _ = try database.receive(3, from: channel)
    engine.time.setNow(UnixTime(nanoseconds: 4_000_000_000_000_000_000))
    #expect(try database.receive(9, from: channel).isEmpty)
    engine.time.setNow(UnixTime(nanoseconds: 0))
    engine.time.advance(by: .seconds(30))
    #expect(try database.receive(9, from: channel).count == 3)
  }

  @Test func `a lease or a count of zero is refused`() {
    #expect(
      code { _ = try database.receive(from: channel, maximumCount: 0, lease: .seconds(1)) }
        == .invalidArgument)
    for lease in [Duration.zero, .seconds(-1), .seconds(Int64.max)] {
      #expect(
        code { _ = try database.receive(from: channel, maximumCount: 1, lease: lease) }
          == .invalidArgument)
    }
  }

  @Test func `receive() keeps to its byte limit, but always takes one message`() throws {
    let configuration = EngineConfiguration { $0.maximumReceiveByteCount = 5 }
    let engine = try PlainEngine(configuration: configuration)
    try engine.database.publish(["1234567", "abc", "de", "f"], to: channel)
    #expect(try engine.database.receive(9, from: channel).map(\.text) == ["1234567"])
    #expect(try engine.database.receive(9, from: channel).map(\.text) == ["abc", "de"])
    #expect(try engine.database.receive(9, from: channel).map(\.text) == ["f"])
  }

  @Test func `statistics count what is ready, leased and delayed`() throws {
    let other = try Channel("other")
    try database.publish(["x"], to: other)
    let deliveries = try database.receive(2, from: channel)
    try database.release([deliveries[0].token], after: .seconds(60))
    let statistics = try database.statistics()
    let orders = try #require(statistics.channels.first { $0.channel == channel })
    #expect(orders.consumers.map(\.readyCount) == [1])
    #expect(orders.consumers.map(\.leasedCount) == [1])
    #expect(orders.consumers.map(\.delayedCount) == [1])
    #expect(orders.oldest == deliveries[0].timetoken)
    #expect(statistics.messageCount == 4)
    engine.time.advance(by: .seconds(31))
    let later = try database.statistics().channels.first { $0.channel == channel }
    #expect(later?.consumers.map(\.readyCount) == [2])
  }
}
