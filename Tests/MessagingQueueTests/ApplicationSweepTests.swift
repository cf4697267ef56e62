import FileRecording
import Foundation
import GRDB
@testable import MessagingQueue
import TestSupport
import Testing

/// The channels of the application `shop`, beside those of others.
@Suite struct ApplicationSweepTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let orders: Channel

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
    orders = try Channel("shop/orders")
  }

  private func texts(_ channel: Channel) async throws -> [String] {
    try await engine.history(of: channel, maximumCount: 100_000).map(\.text)
  }

  private var names: [String] {
    get async throws { try await engine.channels().map(\.channel.name) }
  }

  /// A place behind everything in the log, after an hour.
  private func later() async throws -> Timetoken {
    plain.time.advance(by: .seconds(3600))
    return try #require(Timetoken(rawValue: engine.clockTicks))
  }

  // MARK: Acknowledged messages

  @Test func `a channel of an application keeps acknowledged messages from its first message on`()
    async throws
  {
    let other = try Channel("plain")
    for channel in [orders, other] {
      try await engine.publish(["a"], to: channel)
      try await engine.acknowledge([try await engine.receive(from: channel)[0].token])
    }
    #expect(try await texts(orders) == ["a"])
    #expect(try await texts(other) == [])
    let made = try Channel("shop/made")
    #expect(try await engine.retention(of: made).keepsAcknowledged)
    try await engine.addConsumer(.default, of: made)
    #expect(try await engine.retention(of: made).keepsAcknowledged)
    try await engine.setRetention(Retention(), of: made)
    #expect(try await engine.retention(of: made).keepsAcknowledged == false)
  }

  @Test func `a sweep has the channels of an older version keep acknowledged messages`()
    async throws
  {
    let before = try await engine.publish(["a", "b"], to: orders)[0]
    try await engine.publish(["c"], to: Channel("shopping/x"))
    _ = try plain.number("UPDATE channel SET keeps_acknowledged = 0")
    #expect(try await engine.sweepApplication(named: "shop", before: before) == 0)
    #expect(try await engine.retention(of: orders).keepsAcknowledged)
    #expect(try await engine.retention(of: Channel("shopping/x")).keepsAcknowledged == false)
  }

  // MARK: A range

  @Test func `removeMessages() removes exactly a range, from the log and from consumers`()
    async throws
  {
    let timetokens = try await engine.publish((0..<1400).map { "\($0)" }, to: orders)
    _ = try await engine.receive(from: orders, maximumCount: 400)
    let count = try await engine.removeMessages(
      of: orders, from: timetokens[100], before: timetokens[1300])
    #expect(count == 1200)
    #expect(try await texts(orders) == (Array(0...99) + Array(1300...1399)).map { "\($0)" })
    #expect(try plain.faults() == [])
    #expect(try await engine.removeMessages(of: orders, before: timetokens[1]) == 1)
    #expect(try await engine.removeMessages(of: orders, from: timetokens[1399]) == 1)
    #expect(try await engine.removeMessages(of: orders, from: timetokens[1399]) == 0)
    // The smallest timetoken is a bound, and its predecessor no bound that is missing.
    #expect(try await engine.removeMessages(of: orders, before: Timetoken(.distantPast)) == 0)
    #expect(try await engine.removeMessages(of: orders, from: Timetoken(.distantPast)) == 198)
    #expect(try await engine.removeMessages(of: Channel("shop/none")) == 0)
    #expect(try plain.faults() == [])
  }

  // MARK: The sweep

  @Test func `a sweep removes what is older in all channels of the application, and in no other`()
    async throws
  {
    var channels = try ["shop/a", "shop/a/b", "shop/z", "shop/~"].map { try Channel($0) }
    let others = try ["shop", "shop-2/a", "sho/a", "shop0", "t/shop/a"].map { try Channel($0) }
    for channel in channels + others { try await engine.publish(["old", "older"], to: channel) }
    // More than one transaction looks at.
    try await engine.publish((0..<1100).map { "\($0)" }, to: channels[0])
    let before = try await later()
    for channel in channels + others { try await engine.publish(["new"], to: channel) }
    channels.append(try Channel("shop/late"))
    try await engine.publish(["late"], to: channels[4])
    #expect(try await engine.sweepApplication(named: "shop", before: before) == 1108)
    for channel in channels[..<4] { #expect(try await texts(channel) == ["new"]) }
    #expect(try await texts(channels[4]) == ["late"])
    for channel in others { #expect(try await texts(channel) == ["old", "older", "new"]) }
    #expect(try await engine.sweepApplication(named: "shop", before: before) == 0)
    #expect(try plain.faults() == [])
  }

  @Test func `a sweep spares what a consumer needs, and continues behind it`() async throws {
    try await engine.publish((0..<1300).map { "\($0)" }, to: orders)
    let late = try Consumer("late")
    let deliveries = try await engine.receive(from: orders, for: late, maximumCount: 1200)
    try await engine.acknowledge(deliveries.dropFirst(700).map(\.token))
    let before = try await later()
    #expect(try await engine.sweepApplication(named: "shop", before: before) == 500)
    #expect(try await texts(orders) == (Array(0..<700) + Array(1200..<1300)).map { "\($0)" })
    #expect(try plain.faults() == [])
  }

  @Test func `a sweep removes empty channels, and none with a consumer or a limit of its own`()
    async throws
  {
    let names = ["consumer", "limit", "discards", "id", "gone", "new"]
    let channels = try names.map { try Channel("shop/\($0)") }
    try await engine.publish(["other"], to: Channel("other/gone"))
    for channel in channels[..<5] { try await engine.publish(["x"], to: channel) }
    try await engine.addConsumer(.default, of: channels[0])
    var retention = Retention()
    retention.maximumAge = .seconds(9)
    try await engine.setRetention(retention, of: channels[1])
    retention.maximumAge = nil
    retention.discardsUnacknowledged = true
    try await engine.setRetention(retention, of: channels[2])
    plain.time.advance(by: .seconds(3600))
    try await engine.publish(
      Message(channel: channels[3], payload: [], deduplicationID: "remembered"))
    let before = Timetoken(rawValue: engine.clockTicks + 100)!
    try await engine.publish(["x"], to: channels[5])
    try await engine.acknowledge([try await engine.receive(from: channels[0])[0].token])
    #expect(try await engine.sweepApplication(named: "shop", before: before) == 6)
    #expect(
      try await self.names == [
        "other/gone", "shop/", "shop/consumer", "shop/discards", "shop/id", "shop/limit",
        "shop/new",
      ])
    // The window of the deduplication id has ended.
    plain.time.advance(by: .seconds(3600))
    #expect(try await engine.sweepApplication(named: "shop", before: before) == 0)
    #expect(try await !self.names.contains("shop/id"))
    #expect(try plain.faults() == [])
    #expect(try plain.number("SELECT count(*) FROM deduplication") == 0)
  }

  @Test func `a message that is deleted now leaves its channel until the sweep reaches its age`()
    async throws
  {
    let before = try await later()
    try await engine.publish(["x"], to: orders)
    #expect(try await engine.removeMessages(of: orders) == 1)
    #expect(try await engine.sweepApplication(named: "shop", before: before) == 0)
    #expect(try await names == ["shop/orders"])
    #expect(try await engine.sweepApplication(named: "shop", before: later()) == 0)
    #expect(try await names == ["shop/"])
  }

  @Test func `the number of a removed channel is never given to another`() async throws {
    var numbers: Set<Int> = []
    for round in 0..<5 {
      for name in ["shop/orders", "shop/\(round)"] {
        try await engine.publish(["x"], to: Channel(name))
        let number = try #require(
          try plain.number("SELECT id FROM channel WHERE name = '\(name)'"))
        #expect(numbers.insert(number).inserted)
      }
      #expect(try await engine.sweepApplication(named: "shop", before: later()) == 2)
      #expect(try await names == ["shop/"])
    }
    #expect(try plain.faults() == [])
  }

  // MARK: Sizes

  @Test func `applicationSizes() has the bytes, the messages and the channels of each application`()
    async throws
  {
    try await engine.publish(["12345", "678"], to: orders)
    try await engine.publish(
      Message(channel: Channel("shop/a/b"), payload: [1], headers: ["h": "v"]))
    try await engine.publish(["1"], to: Channel("t/x"))
    try await engine.publish(["1"], to: Channel("plain"))
    let sizes = try await engine.applicationSizes()
    #expect(
      sizes == [
        "shop": ApplicationSize(byteCount: 17, messageCount: 3, channelCount: 2),
        "t": ApplicationSize(byteCount: 1, messageCount: 1, channelCount: 1),
      ])
    _ = try await engine.sweepApplication(named: "shop", before: later())
    #expect(
      try await engine.applicationSizes()["shop"]
        == ApplicationSize(byteCount: 0, messageCount: 0, channelCount: 0))
  }

  @Test func `a sweep is planned by keys alone, without a scan`() async throws {
    for sql in [ApplicationSweep.selectOld, ApplicationSweep.selectEmpty] {
      let steps = try await plain.pool.read { db in
        try String.fetchAll(
          db, sql: "EXPLAIN QUERY PLAN " + sql,
          arguments: StatementArguments(Array(1...sql.count { $0 == "?" })),
          adapter: RangeRowAdapter(3..<4))
      }
      #expect(!steps.isEmpty && !steps.contains { $0.hasPrefix("SCAN ") }, "\(steps)")
    }
  }
}

/// Live readers of channels that a sweep removes.
///
/// A failing test would wait for ever, hence the time limit.
@Suite(.timeLimit(.minutes(10))) struct RemovedChannelTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let orders: Channel

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
    orders = try Channel("shop/orders")
  }

  private func sweep() async throws {
    plain.time.advance(by: .seconds(3600))
    let before = try #require(Timetoken(rawValue: engine.clockTicks))
    _ = try await engine.sweepApplication(named: "shop", before: before)
  }

  @Test func `a reader gets each message once, over the removals of its channel`() async throws {
    var iterator = try await engine.messages(of: orders).makeAsyncIterator()
    var counted = try await engine.messages(of: orders, after: .beginning).makeAsyncIterator()
    for round in 0..<20 {
      let texts = (0...round).map { "\(round).\($0)" }
      try await engine.publish(texts, to: orders)
      try await engine.publish(["x"], to: Channel("shop/other\(round % 3)"))
      for text in texts {
        #expect(try await iterator.next()?.text == text)
        #expect(try await counted.next()?.text == text)
      }
      if round % 3 != 1 { try await sweep() }
      #expect(try plain.number("SELECT count(*) FROM channel") == (round % 3 != 1 ? 1 : 3))
    }
  }

  @Test func `a reader learns that messages were removed together with their channel`()
    async throws
  {
    for isMadeAgain in [false, true] {
      let last = try await engine.publish(["seen"], to: orders)[0]
      var iterator = try await engine.messages(of: orders, after: .after(last))
        .makeAsyncIterator()
      try await engine.publish(["missed"], to: orders)
      try await sweep()
      #expect(try plain.number("SELECT count(*) FROM channel WHERE name = 'shop/orders'") == 0)
      if isMadeAgain { try await engine.publish(["new"], to: orders) }
      var code: EngineError.Code?
      do { _ = try await iterator.next() } catch { code = error.code }
      #expect(code == .messagesRemoved)
      // From the beginning there is no such error.
      var beginning = try await engine.messages(of: orders, after: .beginning).makeAsyncIterator()
      if isMadeAgain { #expect(try await beginning.next()?.text == "new") }
    }
  }

  @Test func `a reader that waits gets no error for messages that were removed elsewhere`()
    async throws
  {
    let quiet = try Channel("shop/quiet")
    var messages = try await engine.messages(of: quiet)
    messages.longestWait = .milliseconds(1)
    let reading = Task { [messages] in
      var iterator = messages.makeAsyncIterator()
      return try await iterator.next()?.text
    }
    try await engine.publish(["x"], to: orders)
    try await eventually("the reader waits") { engine.notifier.waiterCount > 0 }
    try await sweep()
    #expect(try plain.number("SELECT count(*) FROM channel") == 1)
    try await engine.publish(["here"], to: quiet)
    #expect(try await reading.value == "here")
  }

  @Test func `messages that consumers take from a channel made again are counted as missed`()
    async throws
  {
    try await engine.publish(["a", "b", "c"], to: orders)
    var iterator = try await engine.messages(of: orders, after: .beginning).makeAsyncIterator()
    for text in ["a", "b", "c"] { #expect(try await iterator.next()?.text == text) }
    try await sweep()
    var retention = Retention()
    try await engine.setRetention(retention, of: orders)
    try await engine.publish(["d", "e"], to: orders)
    try await engine.acknowledge([try await engine.receive(from: orders)[0].token])
    #expect(try await iterator.next()?.text == "e")
    await #expect(throws: EngineError.self) { try await iterator.next() }
    retention.keepsAcknowledged = true
    try await engine.setRetention(retention, of: orders)
  }
}
