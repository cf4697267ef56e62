import MessagingQueue
import TestSupport
import Testing

@Suite struct ChangeNotificationTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let a: Channel
  let b: Channel

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
    a = try Channel("a")
    b = try Channel("b")
  }

  private func changes(
    in channels: Set<Channel>? = nil, ignoresOwnChanges: Bool = false
  ) async throws -> ChangeNotifications.AsyncIterator {
    try await engine.changes(
      in: channels, delay: .zero, maximumLatency: .zero, ignoresOwnChanges: ignoresOwnChanges
    ).makeAsyncIterator()
  }

  @Test func `one notification covers everything since the last`() async throws {
    try await engine.publish(["before"], to: a)
    var iterator = try await changes()
    try await engine.publish(["1", "2"], to: a)
    let lastOfA = try await engine.publish(["3"], to: a)[0]
    let lastOfB = try await engine.publish(["4"], to: b)[0]
    let first = try #require(try await iterator.next())
    #expect(first.newest == [a: lastOfA, b: lastOfB])
    #expect(first.through == lastOfB)
    let next = try await engine.publish(["5"], to: a)[0]
    #expect(try await iterator.next()?.newest == [a: next])
  }

  @Test func `notifications cover only the selected channels`() async throws {
    var iterator = try await changes(in: [b])
    try await engine.publish(["1"], to: a)
    let last = try await engine.publish(["2"], to: b)[0]
    #expect(try await iterator.next()?.newest == [b: last])
  }

  @Test func `ignoresOwnChanges leaves out publications of the same engine`() async throws {
    let other = try plain.neighbour()
    var iterator = try await changes(ignoresOwnChanges: true)
    try await engine.publish(["own"], to: a)
    try await engine.publish(["own"], to: b)
    let foreign = try await other.publish(["foreign"], to: a)[0]
    for _ in 0..<5 { try await engine.publish(["own", "own"], to: a) }
    #expect(try await iterator.next()?.newest == [a: foreign])
    try await engine.publish(["own"], to: a)
    let next = try await other.publish(["foreign"], to: b)[0]
    #expect(try await iterator.next()?.newest == [b: next])
    try await other.stop()
  }

  @Test func `cancelling the task ends the notifications, and stop() ends them with stopped`()
    async throws
  {
    let sequence = try await engine.changes()
    let reading = Task { for try await _ in sequence {} }
    try await eventually { engine.notifier.waiterCount > 0 }
    reading.cancel()
    try await reading.value
    let stopped = Task { for try await _ in sequence {} }
    try await eventually { engine.notifier.waiterCount > 0 }
    try await engine.stop()
    #expect(await code { try await stopped.value } == .stopped)
  }

  @Test func `a negative delay or a latency below it is refused`() async throws {
    #expect(
      await code { _ = try await engine.changes(delay: .seconds(-1)) } == .invalidArgument)
    #expect(
      await code { _ = try await engine.changes(delay: .seconds(2), maximumLatency: .seconds(1)) }
        == .invalidArgument)
  }
}
