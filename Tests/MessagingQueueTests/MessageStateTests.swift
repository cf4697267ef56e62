import FileLayer
import FileRecording
import GRDB
import MessagingQueue
import QueueFixture
import Testing

/// Single messages: their states, and what takes them out.
@Suite struct MessageStateTests {
  private let channel = Channel.orders
  private let other: Consumer
  private let plain: PlainEngine
  private let engine: MessagingEngine

  init() async throws {
    plain = try PlainEngine()
    engine = try plain.engine()
    other = try Consumer("other")
    try await engine.addConsumer(.default, of: channel, maximumAttempts: 2)
  }

  private func publish(_ messages: Message...) async throws -> [Timetoken] {
    try await engine.publish(messages)
  }

  private func state(_ timetoken: Timetoken, of consumer: Consumer = .default) async throws
    -> MessageState.ConsumerState?
  {
    try await engine.state(of: timetoken, in: channel)?.consumers.first { $0.consumer == consumer }
  }

  private func delivery(_ timetoken: Timetoken) async throws -> DeliveryState? {
    try await state(timetoken)?.delivery
  }

  @Test func `state(of:in:) follows a message through its life`() async throws {
    var late = Message(channel: channel, "late")
    late.availability = .after(.seconds(60))
    late.timeToLive = .seconds(120)
    let timetokens = try await publish(Message(channel: channel, "a"), late)
    let (first, second) = (timetokens[0], timetokens[1])
    #expect(try await delivery(first) == .ready)
    #expect(try await delivery(second) == .delayed(.seconds(60)))

    let lease = try await engine.receive(from: channel, lease: .seconds(30))[0]
    #expect(try await delivery(first) == .leased(.seconds(30)))
    #expect(try await delivery(second) == .delayed(.seconds(60)))
    try await engine.release(lease.token, after: .seconds(5), reason: "not yet")
    #expect(try await delivery(first) == .delayed(.seconds(5)))
    plain.time.advance(by: .seconds(5))
    #expect(try await delivery(first) == .ready)
    let found = try #require(try await state(first))
    #expect(found.attemptCount == 1 && found.maximumAttempts == 2)
    #expect(found.failures.map(\.reason) == ["not yet"])

    try await engine.reject(try await engine.receive(from: channel)[0].token, reason: "never")
    #expect(try await delivery(first) == .deadLetter(reason: "never"))
    #expect(try await state(first)?.failures.map(\.reason) == ["not yet", "never"])
    plain.time.advance(by: .seconds(60))
    #expect(try await delivery(second) == .ready)
    plain.time.advance(by: .seconds(60))
    #expect(try await delivery(second) == .expired)

    try await engine.addConsumer(other, of: channel)
    #expect(try await state(first, of: other)?.delivery == .ready)
    let missing = try #require(Timetoken(rawValue: first.rawValue - 1))
    #expect(try await engine.state(of: missing, in: channel) == nil)
    #expect(try await engine.state(of: first, in: Channel("elsewhere")) == nil)
  }

  @Test func `a message that another consumer needs is acknowledged for the first`() async throws {
    try await engine.addConsumer(other, of: channel)
    let timetoken = try await publish(Message(channel: channel, "a"))[0]
    try await engine.acknowledge(try await engine.receive(from: channel)[0].token)
    #expect(try await delivery(timetoken) == .acknowledged)
    #expect(try await state(timetoken, of: other)?.delivery == .ready)
  }

  @Test func `peek() shows what receive() would return, and changes nothing`() async throws {
    var urgent = Message(channel: channel, "urgent")
    urgent.priority = try Priority(9)
    _ = try await publish(Message(channel: channel, "a"), Message(channel: channel, "b"), urgent)
    let commits = try await engine.statistics().commitNumber
    for _ in 0..<3 {
      let peeked = try await engine.peek(at: channel, maximumCount: 2)
      #expect(peeked.map(\.text) == ["urgent", "a"])
      #expect(peeked.map(\.attempt) == [1, 1])
      await #expect(throws: EngineError.self) { try await engine.acknowledge(peeked[0].token) }
    }
    #expect(try await engine.peek(at: channel, for: other).map(\.text) == ["urgent"])
    #expect(try await engine.statistics(of: channel)?.consumers.map(\.consumer) == [.default])
    #expect(try await engine.statistics().commitNumber == commits)
    #expect(try await engine.receive(from: channel, maximumCount: 9).map(\.attempt) == [1, 1, 1])
    #expect(try await engine.peek(at: channel).isEmpty)
  }

  @Test func `cancel() takes out what is ready, delayed or waiting, and nothing else`() async throws
  {
    var late = Message(channel: channel, "late")
    late.availability = .after(.seconds(60))
    let keyed = ["k1", "k2", "k3"].map { Message(channel: channel, .text($0), orderingKey: "k") }
    let ready = try await publish(Message(channel: channel, "ready"), late)
    let leased = try await engine.publish(keyed)
    let dead = try await publish(Message(channel: channel, "dead"))[0]
    for delivery in try await engine.receive(from: channel, maximumCount: 9) {
      switch delivery.text {
      case "dead": try await engine.reject(delivery.token, reason: "no")
      case "ready": try await engine.release(delivery.token, countsAttempt: false)
      default: #expect(delivery.text == "k1")
      }
    }
    #expect(try await delivery(leased[1]) == .waiting)
    let missing = try #require(Timetoken(rawValue: dead.rawValue + 1))
    let kept = try await engine.cancel(
      ready + [leased[0], leased[1], dead, missing], of: channel)
    #expect(kept == [leased[0], dead, missing])
    #expect(
      try await engine.history(of: channel).map(\.text) == ["k1", "k3", "dead"])
    let wrongSums = try plain.number(
      "SELECT count(*) FROM channel WHERE message_count <> (SELECT count(*) FROM message)")
    #expect(wrongSums == 0)
    #expect(try await engine.read { try MessageVerifier.run($0).isClean })
  }

  @Test func `a cancelled message makes way for the next with its ordering key`() async throws {
    let keyed = try await engine.publish(
      ["k1", "k2"].map { Message(channel: channel, .text($0), orderingKey: "k") })
    // The first is delivered and returned with a delay; the second had to wait.
    let first = try await engine.receive(from: channel, maximumCount: 9)
    #expect(first.map(\.text) == ["k1"])
    try await engine.release(first[0].token)
    #expect(try await engine.cancel([keyed[0]], of: channel) == [])
    #expect(try await engine.receive(from: channel).map(\.text) == ["k2"])
  }

  @Test func `moveDeadLetters() publishes them elsewhere, once each`() async throws {
    let target = try Channel("failed")
    let first = Message(channel: channel, .text("0"), headers: ["h": "v"], orderingKey: "k")
    let rest = try (1..<250).map {
      Message(channel: channel, .text("\($0)"), priority: try Priority($0 == 249 ? 3 : 4))
    }
    let timetokens = try await engine.publish([first] + rest)
    for _ in 0..<3 {
      for delivery in try await engine.receive(from: channel, maximumCount: 100) {
        try await engine.reject(delivery.token, reason: "no")
      }
    }
    let ready = try await publish(Message(channel: channel, "ready"))[0]
    #expect(try await engine.moveDeadLetters([timetokens[0], ready], of: channel, to: target) == 1)
    let moved = try #require(try await engine.history(of: target).first)
    #expect(moved.text == "0" && moved.headers == ["h": "v"] && moved.orderingKey == "k")
    #expect(try await engine.moveDeadLetters(of: channel, to: target) == 249)
    #expect(try await engine.moveDeadLetters(of: channel, to: target) == 0)
    let texts = try await engine.history(of: target, maximumCount: 1000).map(\.text)
    #expect(texts == (0..<250).map(String.init))
    #expect(try await engine.history(of: target, in: .newestFirst)[0].priority == Priority(3))
    #expect(try await engine.history(of: channel).map(\.text) == ["ready"])
    #expect(try await engine.read { try MessageVerifier.run($0).isClean })
  }
}
