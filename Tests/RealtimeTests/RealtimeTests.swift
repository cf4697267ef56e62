import FileLayer
import GRDB
import MessagingQueue
import Realtime
import Synchronization
import TestSupport
import Testing

/// What polls ended with, for a test that waits for them.
private final class Results: Sendable {
  private let stream = AsyncStream.makeStream(of: Result<Events, EngineError>.self)

  func add(_ result: Result<Events, EngineError>) { stream.continuation.yield(result) }

  func next() async throws -> Events {
    var iterator = stream.stream.makeAsyncIterator()
    let result = await iterator.next()
    return try #require(result).get()
  }
}

@Suite struct RealtimeTests {
  let scratch = ScratchFolder()
  let engine: MessagingEngine
  let channel: Channel

  init() throws {
    let pool = try DatabasePool(path: scratch.path("messaging.db"))
    let time = try SystemTimeSource()
    var configuration = EngineConfiguration()
    configuration.maintenanceInterval = .seconds(3600)
    engine = try MessagingEngine(
      pool: pool, time: time, configuration: configuration, isSecured: true)
    channel = try Channel("shop/orders")
  }

  private func publish(_ texts: String...) async throws -> [Timetoken] {
    try await engine.publish(texts.map { Message(channel: channel, payload: Array($0.utf8)) })
  }

  @Test func `a poll gets what is committed while it waits`() async throws {
    let realtime = try await Realtime(engine)
    let run = Task { try await realtime.run() }
    let results = Results()
    realtime.poll(Subscription(channels: [channel]), after: realtime.place) {
      results.add($0)
    }
    let timetokens = try await publish("a", "b")
    let events = try await results.next()
    #expect(events.events.map(\.message.timetoken) == timetokens)
    #expect(events.end == timetokens[1])
    run.cancel()
    try await run.value
  }

  @Test func `a poll from before the window reads the log, and then waits with the others`()
    async throws
  {
    let start = try await engine.logEnd()
    let before = try await publish("a", "b", "c")
    let realtime = try await Realtime(engine)
    let run = Task { try await realtime.run() }
    let results = Results()
    let subscription = Subscription(channels: [channel])
    realtime.poll(subscription, after: start, maximumCount: 2) { results.add($0) }
    let first = try await results.next()
    #expect(first.events.map(\.message.timetoken) == Array(before[..<2]))
    #expect(first.end == before[1])
    realtime.poll(subscription, after: first.end) { results.add($0) }
    #expect(try await results.next().events.map(\.message.timetoken) == [before[2]])
    // Nothing is left for it in the log.
    let other = try Channel("shop/other")
    realtime.poll(Subscription(channels: [other]), after: start) { results.add($0) }
    try await eventually { realtime.waitingCount > 0 }
    let later = try await engine.publish(Message(channel: other, payload: []))
    #expect(try await results.next().events.map(\.message.timetoken) == [later])
    run.cancel()
    try await run.value
  }

  @Test func `events that are not stored reach waiting polls, in order with messages`() async throws
  {
    let realtime = try await Realtime(engine)
    let run = Task { try await realtime.run() }
    let results = Results()
    let subscription = Subscription(channels: [channel])
    let start = realtime.place
    realtime.poll(subscription, after: start) { results.add($0) }
    let event = Message(channel: channel, payload: [1], headers: ["kind": "signal"])
    // The first one reserves places.
    let first = try await realtime.send([event])
    #expect(try await engine.logEnd() > start)
    let alone = try await results.next()
    #expect(alone.events.map(\.isStored) == [false] && alone.end == first[0])
    #expect(alone.events.map(\.message.headers) == [["kind": "signal"]])
    let end = try await engine.logEnd()
    let second = try await realtime.send([event, event])
    #expect(try await engine.logEnd() == end)
    let stored = try await publish("a")
    try await eventually { realtime.place >= stored[0] }
    let third = try await realtime.send([event])
    realtime.poll(subscription, after: first[0]) { results.add($0) }
    let all = try await results.next()
    #expect(all.events.map(\.message.timetoken) == second + stored + third)
    #expect(all.events.map(\.isStored) == [false, false, true, false])
    #expect(try await engine.history(of: channel).map(\.timetoken) == stored)
    run.cancel()
    try await run.value
    await #expect(throws: EngineError.self) { try await realtime.send([event]) }
  }

  @Test func `many senders, publishers and subscribers agree on one order`() async throws {
    let realtime = try await Realtime(engine)
    let run = Task { try await realtime.run() }
    let start = realtime.place
    let subscription = Subscription(channels: [channel])
    let readers = (0..<4).map { _ in
      Task {
        var (place, found) = (start, [Timetoken]())
        while found.count < 900 {
          let events = try await withCheckedThrowingContinuation { caller in
            realtime.poll(subscription, after: place, maximumCount: 7) { caller.resume(with: $0) }
          }
          found += events.events.map(\.message.timetoken)
          place = events.end
        }
        return found
      }
    }
    let places = try await withThrowingTaskGroup(of: [Timetoken].self) { group in
      for index in 0..<6 {
        group.addTask { [engine, channel] in
          var places: [Timetoken] = []
          for _ in 0..<50 {
            let message = Message(channel: channel, payload: [UInt8(index)])
            let isStored = index % 3 == 0
            let messages = Array(repeating: message, count: 3)
            places +=
              isStored ? try await engine.publish(messages) : try await realtime.send(messages)
          }
          return places
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    for reader in readers { #expect(try await reader.value == places.sorted()) }
    run.cancel()
    try await run.value
  }

  @Test func `an application with thousands of subscribers leaves room for another's`()
    async throws
  {
    let realtime = try await Realtime(engine)
    let run = Task { try await realtime.run() }
    let order = Mutex<[Channel]>([])
    let (many, one) = (channel, try Channel("other/one"))
    for channel in [Channel](repeating: many, count: 5_000) + [one] {
      realtime.poll(Subscription(channels: [channel]), after: realtime.place) { _ in
        order.withLock { $0.append(channel) }
      }
    }
    try await engine.publish([many, one].map { Message(channel: $0, payload: []) })
    try await eventually { order.withLock { $0.count } == 5_001 }
    // After no more than one turn.
    let position = try #require(order.withLock { $0.firstIndex(of: one) })
    #expect(position <= 64)
    run.cancel()
    try await run.value
  }

  @Test func `all polls end when the engine stops`() async throws {
    let realtime = try await Realtime(engine)
    let run = Task { try await realtime.run() }
    let results = Results()
    let start = realtime.place
    realtime.poll(Subscription(channels: [channel]), after: start) { results.add($0) }
    try await engine.stop()
    let error = await #expect(throws: EngineError.self) { try await results.next() }
    #expect(error?.code == .stopped)
    await #expect(throws: EngineError.self) { try await run.value }
    realtime.poll(Subscription(channels: [channel]), after: start) { results.add($0) }
    await #expect(throws: EngineError.self) { try await results.next() }
  }
}
