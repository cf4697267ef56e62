import FileRecording
import GRDB
import MessagingQueue
import Testing

/// Live readers of channels whose consumers are faster, so that messages leave the log unread.
///
/// A failing test would wait for ever, hence the time limit.
@Suite(.timeLimit(.minutes(10))) struct MissedMessagesTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let channel = Channel.orders

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
  }

  private func acknowledge(_ channel: Channel, count: Int = .max) async throws {
    var rest = count
    while rest > 0 {
      let deliveries = try await engine.receive(from: channel, maximumCount: min(rest, 500))
      if deliveries.isEmpty { return }
      try await engine.acknowledge(deliveries.map(\.token))
      rest -= deliveries.count
    }
  }

  /// How many messages a reader gets until its error, and the text of the error.
  private func readOn(
    _ iterator: inout LogMessages.AsyncIterator
  ) async throws -> (count: Int, told: String) {
    var count = 0
    do {
      while try await iterator.next() != nil { count += 1 }
    } catch {
      #expect(error.code == .messagesRemoved)
      return (count, error.message)
    }
    return (count, "")
  }

  @Test(arguments: ["beginning", "now", "after", "newest"])
  func `a slow reader gets the remaining messages, then the number that it missed`(
    start: String
  ) async throws {
    let first = try await engine.publish(["before"], to: channel)
    let position: LogPosition =
      switch start {
      case "beginning": .beginning
      case "now": .now
      case "after": .after(first[0])
      default: .newest(1)
      }
    let sequence = try await engine.messages(of: channel, after: position)
    var iterator = sequence.makeAsyncIterator()
    try await engine.publish((0..<999).map { "\($0)" }, to: channel)
    _ = try await iterator.next()
    try await acknowledge(channel)
    try await engine.publish(["last"], to: channel)
    let (count, told) = try await readOn(&iterator)
    // A page of 256, and the last message.
    #expect(count == 256)
    let seesFirst = start == "beginning" || start == "newest"
    #expect(told.hasPrefix("\(seesFirst ? 744 : 743) messages of orders were acknowledged"))
    #expect(try await iterator.next() == nil)
  }

  @Test func `a reader learns of messages that came and went before its first read`() async throws {
    let sequence = try await engine.messages(of: channel)
    try await engine.publish(["a", "b"], to: channel)
    try await acknowledge(channel, count: 1)
    var iterator = sequence.makeAsyncIterator()
    #expect(try await iterator.next()?.text == "b")
    let (count, told) = try await readOn(&iterator)
    #expect(count == 0)
    #expect(told.hasPrefix("1 messages of orders "))
  }

  @Test func `a reader that has seen all messages gets no error when they leave the log`()
    async throws
  {
    try await engine.publish(["gone before"], to: channel)
    try await acknowledge(channel)
    var iterator = try await engine.messages(of: channel, after: .beginning).makeAsyncIterator()
    for round in 0..<5 {
      var message = Message(channel: channel, payload: Array("\(round)".utf8))
      message.deduplicationID = "round \(round)"
      message.timeToLive = .seconds(1)
      // Published three ways: with a known id, with a delay, and in a transaction that is rolled
      // back.
      try await engine.publish([message, message])
      message.deduplicationID = nil
      message.timeToLive = nil
      message.availability = .after(.seconds(3600))
      try await engine.publish(message)
      struct Undone: Error {}
      await #expect(throws: Undone.self) {
        try await engine.write { [engine, message] db in
          _ = try engine.publish(message, in: db)
          throw Undone()
        }
      }
      try await engine.publish(["elsewhere"], to: Channel("other"))
      for _ in 0..<2 { #expect(try await iterator.next()?.text == "\(round)") }
      switch round {
      case 0: try await acknowledge(channel)
      case 1: try await engine.purge(channel, before: nil)
      case 2: plain.time.advance(by: .seconds(10))
      case 3: _ = try await engine.removeConsumer(.default, of: channel)
      default: break
      }
      try await acknowledge(channel)
    }
  }

  @Test func `missed messages are counted over the reader's channels, and no others`() async throws
  {
    let channels = try (0..<3).map { try Channel("channel \($0)") }
    try await engine.publish(["old"], to: channels[0])
    var iterator = try await engine.messages(of: [channels[0], channels[1]], after: .beginning)
      .makeAsyncIterator()
    #expect(try await iterator.next()?.text == "old")
    for channel in channels {
      try await engine.publish(["x", "y"], to: channel)
      try await acknowledge(channel)
    }
    try await engine.publish(["last"], to: channels[1])
    let (count, told) = try await readOn(&iterator)
    #expect(count == 1)
    #expect(told.hasPrefix("4 messages of 2 channels "))
  }

  @Test func `a skipping reader gets the number of missed messages with its next message`()
    async throws
  {
    var iterator = try await engine.messages(of: channel, overflow: .skip(toNewest: 2))
      .makeAsyncIterator()
    try await engine.publish((0..<6).map { "\($0)" }, to: channel)
    try await acknowledge(channel, count: 3)
    let found = [try await iterator.next(), try await iterator.next()]
    #expect(found.map { $0?.text } == ["4", "5"])
    #expect(found.map { $0?.skippedCount } == [4, 0])
    try await engine.publish(["6"], to: channel)
    try await acknowledge(channel)
    try await engine.publish(["7"], to: channel)
    let last = try await iterator.next()
    #expect(last?.text == "7")
    #expect(last?.skippedCount == 1)
  }

  @Test func `messages that an import stores and removes in one step are missed by no reader`()
    async throws
  {
    let fixture = try await ExchangeFixture()
    try await fixture.fill()
    let kept = try Channel("kept")
    try await fixture.targetEngine.publish(["here"], to: kept)
    _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    var iterator = try await fixture.targetEngine.messages(of: kept).makeAsyncIterator()
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    for payload: [UInt8] in [[3], [4]] {
      #expect(try await iterator.next()?.payload == payload)
    }
    try await fixture.targetEngine.publish(["there"], to: kept)
    #expect(try await iterator.next()?.text == "there")
    #expect(try ExchangeFixture.faults(fixture.target) == [])
  }
}
