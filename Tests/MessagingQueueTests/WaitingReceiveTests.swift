import FileLayer
import TestSupport
import Testing

@testable import MessagingQueue

@Suite struct WaitingReceiveTests {
  let channel = Channel.orders
  let plain: PlainEngine
  let engine: MessagingEngine
  /// Longer than any machine is busy, so that only the awaited event ends a wait.
  private static let longest = Duration.seconds(3600)

  init() async throws {
    plain = try PlainEngine()
    // With the system's clock, by which leases and delays end by themselves.
    engine = try plain.neighbour(time: SystemTimeSource())
  }

  private func received(_ publish: () async throws -> Void) async throws -> [[UInt8]] {
    async let deliveries = engine.receive(
      from: channel, maximumCount: 9, waitingUpTo: Self.longest)
    try await eventually { engine.notifier.waiterCount > 0 }
    try await publish()
    return try await deliveries.map(\.payload)
  }

  @Test func `a waiting receive() gets a message published by this engine or another`() async throws
  {
    let other = try plain.neighbour(time: SystemTimeSource())
    for (name, publisher) in [("this engine", engine), ("another", other)] {
      let payloads = try await received { try await publisher.publish([name], to: channel) }
      #expect(payloads == [Array(name.utf8)])
    }
  }

  @Test func `a waiting receive() gets released messages, and those that their key held back`()
    async throws
  {
    var message = Message(channel: channel, payload: [1])
    message.orderingKey = "key"
    var next = message
    next.payload = [2]
    try await engine.publish([message, next])
    let other = try plain.neighbour(time: SystemTimeSource())
    let first = try await other.receive(from: channel, maximumCount: 9)
    #expect(try await received { try await other.release(first.map(\.token)) } == [[1]])
    #expect(try await engine.receive(from: channel).isEmpty)
  }

  @Test func `a waiting receive() gets messages whose delay or lease ends`() async throws {
    var message = Message(channel: channel, payload: [1])
    message.availability = .after(.milliseconds(30))
    try await engine.publish(message)
    let due = try await engine.receive(
      from: channel, lease: .milliseconds(30), waitingUpTo: Self.longest)
    #expect(due.map(\.attempt) == [1])
    let again = try await engine.receive(from: channel, waitingUpTo: Self.longest)
    #expect(again.map(\.attempt) == [2])
  }

  @Test func `a waiting receive() notices an earlier end of a lease`() async throws {
    try await engine.publish((0..<2).map { Message(channel: channel, payload: [$0]) })
    let held = try await engine.receive(from: channel, maximumCount: 2, lease: .seconds(600))
    let generation = { [notifier = engine.notifier] in notifier.generation }
    var before = generation()
    try await engine.extend([held[0].token], by: .seconds(900))
    #expect(generation() == before)
    try await engine.extend([held[0].token], by: .seconds(300))
    #expect(generation() > before)
    before = generation()
    try await engine.release([held[1].token], after: .seconds(10))
    #expect(generation() > before)
  }

  @Test func `receive() waits no longer than its timeout, or than the engine runs`() async throws {
    #expect(try await engine.receive(from: channel, waitingUpTo: .milliseconds(20)).isEmpty)
    let waiting = Task { try await engine.receive(from: channel, waitingUpTo: Self.longest) }
    try await eventually { engine.notifier.waiterCount > 0 }
    try await engine.stop()
    await #expect { try await waiting.value } throws: { ($0 as? EngineError)?.code == .stopped }
  }

  @Test func `a cancelled receive() leases nothing`() async throws {
    let waiting = Task { try await engine.receive(from: channel, waitingUpTo: Self.longest) }
    try await eventually { engine.notifier.waiterCount > 0 }
    waiting.cancel()
    await #expect { try await waiting.value } throws: { ($0 as? EngineError)?.code == .cancelled }
    try await engine.publish(Message(channel: channel, payload: [1]))
    #expect(try await engine.receive(from: channel).count == 1)
  }
}
