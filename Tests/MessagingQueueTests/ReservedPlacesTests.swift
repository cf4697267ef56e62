import FileRecording
import GRDB
import MessagingQueue
import QueueFixture
import TestSupport
import Testing

@Suite struct ReservedPlacesTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let shop: Channel

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
    shop = try Channel("shop/orders")
  }

  @Test func `no message gets a reserved place, whatever the clock does`() async throws {
    try await engine.publish(["a"], to: .orders)
    let first = try await engine.reservePlaces(count: 100_000)
    #expect(first.count == 100_000 && first.lowerBound % 100 == 0)
    #expect(try await engine.logEnd().rawValue == first.upperBound)
    let between = try await engine.publish(["b"], to: .orders)[0]
    let second = try await engine.reservePlaces(count: 1)
    plain.time.advance(by: .seconds(5))
    let third = try await engine.reservePlaces(count: 7)
    let last = try await engine.publish(["c"], to: shop)[0]
    #expect(first.upperBound < between.rawValue && between.rawValue < second.lowerBound)
    #expect(second.upperBound < third.lowerBound && third.lowerBound == engine.clockTicks)
    #expect(third.upperBound < last.rawValue)
    let restarted = try plain.neighbour()
    #expect(try await restarted.logEnd() == last)
    #expect(try await restarted.reservePlaces(count: 1).lowerBound > last.rawValue)
    #expect(try plain.faults() == [])
    try await restarted.stop()
  }

  @Test func `places are reserved in the commit of messages that are published together with them`()
    async throws
  {
    let (queue, shop) = (plain.database, shop)
    let answers = try queue.together(
      (0..<6).map { index in
        { @Sendable engine in
          if index % 2 == 0 { return try await engine.publish(["\(index)"], to: shop)[0].rawValue }
          return try await engine.reservePlaces(count: 250).lowerBound
        }
      })
    let places = try answers.map { try $0.get() }
    #expect(places == places.sorted())
    for index in [1, 3] { #expect(places[index + 1] >= places[index] + 250) }
    #expect(try plain.number("SELECT commit_number FROM engine") == 1 + 1)
  }

  @Test func `a reservation is refused that no timetoken has room for`() async throws {
    await #expect(throws: EngineError.self) { try await engine.reservePlaces(count: 0) }
    await #expect(throws: EngineError.self) { try await engine.reservePlaces(count: .max) }
    #expect(try plain.number("SELECT commit_number FROM engine") == 1)
  }
}

@Suite struct NotedChangeTests {
  let plain: PlainEngine
  let engine: MessagingEngine

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
  }

  private var commitNumber: Int? {
    get throws { try plain.number("SELECT commit_number FROM engine") }
  }

  @Test func `noteChange() counts a commit and wakes waiters of this and other processes after it`()
    async throws
  {
    try await engine.write { try $0.execute(sql: "CREATE TABLE own (x)") }
    let other = try plain.neighbour()
    for notifier in [engine.notifier, other.notifier] {
      // The listener wakes the first waiter when it begins.
      #expect(await notifier.waitForChange(after: notifier.generation) == .changed)
    }
    let before = try #require(try commitNumber)
    let generations = [engine, other].map(\.notifier.generation)
    let near = Task { await engine.notifier.waitForChange(after: generations[0]) }
    try await eventually { engine.notifier.waiterCount > 0 }
    try await engine.write { [engine] db in
      try db.execute(sql: "INSERT INTO own VALUES (1)")
      try engine.noteChange(in: db)
    }
    #expect(await near.value == .changed)
    #expect(await other.notifier.waitForChange(after: generations[1]) == .changed)
    #expect(try commitNumber == before + 1)
    try await other.stop()
  }

  @Test func `noteChange() wakes no waiter of a channel, and none after a rollback`() async throws {
    let notifier = engine.notifier
    let count = notifier.generation
    let before = try commitNumber
    struct Undone: Error {}
    await #expect(throws: Undone.self) {
      try await engine.write { [engine] db in
        try engine.noteChange(in: db)
        throw Undone()
      }
    }
    #expect(notifier.generation == count)
    #expect(try commitNumber == before)
    await #expect(throws: EngineError.self) {
      try await engine.read { [engine] db in try engine.noteChange(in: db) }
    }
  }
}
