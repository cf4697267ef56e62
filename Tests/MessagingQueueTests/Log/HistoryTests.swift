import Dispatch
import GRDB
import MessagingQueue
import Testing

@Suite struct HistoryTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let channel = Channel.orders

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
  }

  /// Expects these texts in the pages of the history, in both directions.
  private func expectPages(
    of channels: Set<Channel>, byCount maximumCount: Int, _ texts: [String]
  ) async throws {
    for (order, expected) in [(HistoryOrder.oldestFirst, texts), (.newestFirst, texts.reversed())] {
      var found: [String] = []
      var cursor: Timetoken?
      while true {
        let page = try await engine.history(
          of: channels, in: order, from: cursor, maximumCount: maximumCount)
        guard let last = page.last else { break }
        #expect(page.count <= maximumCount)
        found += page.map(\.text)
        cursor = last.timetoken
      }
      #expect(found == expected)
    }
  }

  @Test func `pages of history in both directions return every message once, in order`()
    async throws
  {
    let texts = (0..<25).map { "\($0)" }
    try await engine.publish(texts, to: channel)
    try await engine.publish(["other"], to: Channel("other"))
    try await expectPages(of: [channel], byCount: 7, texts)
  }

  @Test func `a cursor is exclusive and need not be the timetoken of a message`() async throws {
    let timetokens = try await engine.publish(["a", "b", "c"], to: channel)
    let after = try await engine.history(of: channel, from: timetokens[0])
    #expect(after.map(\.text) == ["b", "c"])
    #expect(after.map(\.timetoken) == Array(timetokens[1...]))
    let before = try await engine.history(of: channel, in: .newestFirst, from: timetokens[2])
    #expect(before.map(\.text) == ["b", "a"])
    let future = try #require(Timetoken("99999999999999999"))
    #expect(try await engine.history(of: channel, from: future).isEmpty)
    #expect(try await engine.history(of: channel, in: .newestFirst, from: future).count == 3)
  }

  @Test func `a page keeps to its byte limit, but always has one message`() async throws {
    try await engine.publish(["aaaa", "bb", "cc", "d"], to: channel)
    func page(_ byteCount: Int) async throws -> [String] {
      try await engine.history(of: channel, maximumByteCount: byteCount).map(\.text)
    }
    #expect(try await page(1) == ["aaaa"])
    #expect(try await page(7) == ["aaaa", "bb"])
    #expect(try await page(8) == ["aaaa", "bb", "cc"])
    #expect(try await page(9) == ["aaaa", "bb", "cc", "d"])
  }

  @Test func `several channels are read as one log`() async throws {
    let channels = try (0..<5).map { try Channel("channel \($0)") }
    var published: [String] = []
    for index in 0..<40 {
      let text = "\(index)"
      published.append(text)
      try await engine.publish([text], to: channels[index * index % 5])
    }
    try await engine.publish(["not asked for"], to: channel)
    let asked = try Set(channels + [Channel("never published to")])
    try await expectPages(of: asked, byCount: 6, published)
  }

  @Test func `history has headers, priority and ordering key as they were published`() async throws
  {
    var message = Message(channel: channel, payload: [1], headers: ["type": "order", "é": ""])
    message.orderingKey = "customer 7"
    var urgent = Message(channel: channel, payload: [2])
    urgent.priority = try Priority(9)
    try await engine.publish([message, urgent])
    for channels in [[channel], [channel, try Channel("other")]] as [Set<Channel>] {
      let found = try await engine.history(of: channels)
      #expect(found.map(\.headers) == [message.headers, [:]])
      #expect(found.map(\.orderingKey) == ["customer 7", nil])
      #expect(found.map(\.priority) == [.normal, urgent.priority])
      #expect(found.map(\.payload) == [[1], [2]])
    }
  }

  @Test func `history shows leased messages and leases none`() async throws {
    try await engine.publish(["a"], to: channel)
    _ = try await engine.receive(from: channel)
    #expect(try await engine.history(of: channel).map(\.text) == ["a"])
    #expect(try await engine.receive(from: channel).isEmpty)
  }

  @Test func `messageCount() counts from a timetoken on`() async throws {
    let timetokens = try await engine.publish(["a", "b", "c"], to: channel)
    #expect(try await engine.messageCount(of: channel) == 3)
    #expect(try await engine.messageCount(of: channel, after: timetokens[0]) == 2)
    #expect(try await engine.messageCount(of: channel, after: timetokens[2]) == 0)
    #expect(try await engine.messageCount(of: Channel("none")) == 0)
    for (maximumCount, count) in [(1, 1), (2, 2), (3, 2)] {
      #expect(
        try await engine.messageCount(
          of: channel, after: timetokens[0], maximumCount: maximumCount) == count)
    }
  }

  @Test func `history() refuses a page with a limit of zero`() async throws {
    #expect(
      await code { _ = try await engine.history(of: channel, maximumCount: 0) } == .invalidArgument)
    #expect(
      await code { _ = try await engine.history(of: channel, maximumByteCount: 0) }
        == .invalidArgument)
  }

  @Test func `history waits for no writer`() async throws {
    try await engine.publish(["a"], to: channel)
    let reader = try plain.neighbour()
    let (begun, begin) = AsyncStream<Void>.makeStream()
    let end = DispatchSemaphore(value: 0)
    let writer = Task {
      try await plain.pool.writeWithoutTransaction { db in
        try db.inTransaction(.immediate) {
          begin.finish()
          end.wait()
          return .rollback
        }
      }
    }
    for await _ in begun {}
    #expect(try await reader.history(of: channel).map(\.text) == ["a"])
    #expect(try await engine.history(of: channel).map(\.text) == ["a"])
    end.signal()
    try await writer.value
    try await reader.stop()
  }

  @Test(arguments: [
    EngineDatabase.selectForward, EngineDatabase.selectBackward, EngineDatabase.selectOne,
    EngineDatabase.countAfter, EngineDatabase.selectKeysForward, EngineDatabase.selectKeysBackward,
  ])
  func `the log is read by index alone, without a scan or a sort`(sql: String) async throws {
    try await engine.publish(["a"], to: channel)
    let steps = try await plain.pool.read { db in
      try String.fetchAll(
        db, sql: "EXPLAIN QUERY PLAN " + sql,
        arguments: StatementArguments(Array(1...sql.count { $0 == "?" })),
        adapter: RangeRowAdapter(3..<4))
    }
    #expect(!steps.isEmpty)
    for step in steps {
      #expect(step.hasPrefix("SEARCH message USING"), "\(step)")
    }
  }
}
