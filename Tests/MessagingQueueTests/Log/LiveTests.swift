import MessagingQueue
import Synchronization
import TestSupport
import Testing

@Suite struct LiveTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let channel = Channel.orders

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
  }

  /// The texts of the next messages.
  private func take(
    _ count: Int, from iterator: inout LogMessages.AsyncIterator
  ) async throws -> [String] {
    var texts: [String] = []
    while texts.count < count, let message = try await iterator.next() {
      texts.append(message.text)
    }
    return texts
  }

  @Test func `a live sequence begins at its start position`() async throws {
    let timetokens = try await engine.publish(["a", "b"], to: channel)
    var all = try await engine.messages(of: channel, after: .beginning).makeAsyncIterator()
    var some = try await engine.messages(of: channel, after: .after(timetokens[0]))
      .makeAsyncIterator()
    var new = try await engine.messages(of: channel).makeAsyncIterator()
    try await engine.publish(["c"], to: channel)
    #expect(try await take(3, from: &all) == ["a", "b", "c"])
    #expect(try await take(2, from: &some) == ["b", "c"])
    #expect(try await take(1, from: &new) == ["c"])
  }

  @Test func `a live sequence neither misses nor repeats a message after its history`() async throws
  {
    let other = try plain.neighbour()
    let publishers = [engine, other]
    let total = 400
    let published = Mutex(0)
    let sequence = try await engine.messages(of: channel, after: .beginning)
    let publishing = Task { [channel] in
      for index in 0..<total {
        try await publishers[index % 2].publish(["\(index)"], to: channel)
        published.withLock { $0 += 1 }
      }
    }
    // Readers that begin while messages are published.
    try await withThrowingTaskGroup(of: [String].self) { group in
      for index in 0..<4 {
        try await eventually("messages before a reader") {
          published.withLock { $0 } >= index * 20
        }
        group.addTask {
          var iterator = sequence.makeAsyncIterator()
          return try await take(total, from: &iterator)
        }
      }
      for try await texts in group {
        #expect(texts == (0..<total).map { "\($0)" })
      }
    }
    try await publishing.value
    try await other.stop()
  }

  @Test func `several channels are followed as one log`() async throws {
    let channels = try (0..<3).map { try Channel("channel \($0)") }
    var iterator = try await engine.messages(of: Set(channels)).makeAsyncIterator()
    for index in 0..<9 { try await engine.publish(["\(index)"], to: channels[index % 3]) }
    try await engine.publish(["not asked for"], to: channel)
    #expect(try await take(9, from: &iterator) == (0..<9).map { "\($0)" })
  }

  @Test func `cancelling the task ends the sequence`() async throws {
    let sequence = try await engine.messages(of: channel)
    let reading = Task {
      var count = 0
      for try await _ in sequence { count += 1 }
      return count
    }
    try await engine.publish(["a"], to: channel)
    try await eventually { engine.notifier.waiterCount > 0 }
    reading.cancel()
    #expect(try await reading.value <= 1)
  }

  @Test func `stop() ends a live sequence with stopped`() async throws {
    let sequence = try await engine.messages(of: channel)
    let reading = Task { for try await _ in sequence {} }
    try await eventually { engine.notifier.waiterCount > 0 }
    try await engine.stop()
    #expect(await code { try await reading.value } == .stopped)
    #expect(await code { _ = try await engine.messages(of: channel) } == .stopped)
    #expect(await code { _ = try await engine.history(of: channel) } == .stopped)
  }

  @Test func `a sequence that has ended stays ended`() async throws {
    var iterator = try await engine.messages(of: channel, after: .beginning).makeAsyncIterator()
    try await engine.publish(["a"], to: channel)
    try await engine.stop()
    await #expect(throws: EngineError.self) { try await iterator.next() }
    #expect(try await iterator.next() == nil)
  }

  @Test func `a slow reader that waits gets everything`() async throws {
    var iterator = try await engine.messages(of: channel).makeAsyncIterator()
    let texts = (0..<1000).map { "\($0)" }
    try await engine.publish(texts, to: channel)
    #expect(try await take(1000, from: &iterator) == texts)
  }

  @Test func `retention gives an error to a slow reader, but not to one that begins later`()
    async throws
  {
    let timetokens = try await engine.publish(["a", "b", "c"], to: channel)
    var slow = try await engine.messages(of: channel, after: .after(timetokens[0]))
      .makeAsyncIterator()
    var current = try await engine.messages(of: channel).makeAsyncIterator()
    try await engine.purge(channel, before: timetokens[2])
    await #expect(throws: EngineError.self) { try await slow.next() }
    #expect(
      await code {
        var again = try await engine.messages(of: channel, after: .after(timetokens[0]))
          .makeAsyncIterator()
        _ = try await again.next()
      } == .messagesRemoved)
    var fresh = try await engine.messages(of: channel, after: .beginning).makeAsyncIterator()
    var behind = try await engine.messages(of: channel, after: .after(timetokens[1]))
      .makeAsyncIterator()
    try await engine.publish(["d"], to: channel)
    #expect(try await take(2, from: &fresh) == ["c", "d"])
    #expect(try await take(2, from: &behind) == ["c", "d"])
    #expect(try await take(1, from: &current) == ["d"])
    #expect(try await engine.channels().map(\.removedThrough) == [timetokens[1]])
  }

  @Test func `a skipping reader gets the newest messages and the number it skipped`() async throws {
    var iterator = try await engine.messages(of: channel, overflow: .skip(toNewest: 3))
      .makeAsyncIterator()
    try await engine.publish((0..<10).map { "\($0)" }, to: channel)
    var found: [LogMessage] = []
    for _ in 0..<3 { found.append(try #require(try await iterator.next())) }
    #expect(found.map(\.text) == ["7", "8", "9"])
    #expect(found.map(\.skippedCount) == [7, 0, 0])
    try await engine.publish(["10", "11", "12"], to: channel)
    found = []
    for _ in 0..<3 { found.append(try #require(try await iterator.next())) }
    #expect(found.map(\.text) == ["10", "11", "12"])
    #expect(found.map(\.skippedCount) == [0, 0, 0])
    #expect(
      await code { _ = try await engine.messages(of: channel, overflow: .skip(toNewest: 0)) }
        == .invalidArgument)
  }
}
