import DataVaultTesting
import GRDB
import MessagingQueue
import Testing

@Suite struct LogTailTests {
  let plain: PlainEngine
  let engine: MessagingEngine
  let shop: Channel

  init() throws {
    plain = try PlainEngine()
    engine = try plain.engine()
    shop = try Channel("shop/orders")
  }

  @Test func `the tail has the messages of all channels in the order of their timetokens`()
    async throws
  {
    let start = try await engine.logEnd()
    let first = try await engine.publish(["a", "b"], to: shop)
    let other = try await engine.publish(["c"], to: .orders)
    let last = try await engine.publish(["d"], to: shop)
    let tail = try await engine.logTail(after: start)
    #expect(tail.messages.map(\.text) == ["a", "b", "c", "d"])
    #expect(tail.messages.map(\.channel) == [shop, shop, .orders, shop])
    #expect(tail.messages.map(\.timetoken) == first + other + last)
    #expect(tail.isAtEnd && tail.end == last[0])
    #expect(try await engine.logEnd() == last[0])
    let rest = try await engine.logTail(after: first[1])
    #expect(rest.messages.map(\.text) == ["c", "d"])
  }

  @Test func `a page of the tail ends at a message, and the next page begins after it`()
    async throws
  {
    let start = try await engine.logEnd()
    let texts = (0..<25).map { "\($0)" }
    try await engine.publish(texts, to: shop)
    var (place, found, pageCount) = (start, [String](), 0)
    while true {
      let tail = try await engine.logTail(after: place, maximumCount: 10)
      found += tail.messages.map(\.text)
      pageCount += 1
      #expect(tail.end == tail.messages.last?.timetoken)
      place = tail.end
      if tail.isAtEnd { break }
    }
    #expect(found == texts)
    #expect(pageCount == 3)
    let small = try await engine.logTail(after: start, maximumByteCount: 1)
    #expect(small.messages.count == 1 && !small.isAtEnd)
  }

  @Test func `the end of an empty tail never goes back`() async throws {
    let end = try await engine.logEnd()
    #expect(try await engine.logTail(after: end).end == end)
    let later = try #require(Timetoken(rawValue: end.rawValue + 1000))
    let tail = try await engine.logTail(after: later)
    #expect(tail.messages.isEmpty && tail.isAtEnd && tail.end == later)
  }

  @Test func `an application's timetokens are multiples of 100, and all are ascending`()
    async throws
  {
    var timetokens: [Timetoken] = []
    for channel in [shop, .orders, .orders, shop, shop] {
      timetokens += try await engine.publish(["m"], to: channel)
    }
    #expect(timetokens == timetokens.sorted() && Set(timetokens).count == 5)
    for index in [0, 3, 4] { #expect(timetokens[index].rawValue % 100 == 0) }
    #expect(timetokens[1].rawValue == timetokens[0].rawValue + 1)
    #expect(timetokens[2].rawValue == timetokens[1].rawValue + 1)
    #expect(timetokens[4].rawValue == timetokens[3].rawValue + 100)
  }

  @Test func `the tail of a selection has named channels and those below a prefix, in one order`()
    async throws
  {
    let start = try await engine.logEnd()
    for (name, text) in [
      ("shop/a.x", "1"), ("shop/b", "2"), ("shop/a", "3"), ("shop/a.y.z", "4"), ("shop/a/x", "5"),
      ("other/a.x", "6"), ("shop/b", "7"),
    ] {
      try await engine.publish([text], to: Channel(name))
    }
    let selection = ChannelSelection(channels: [try Channel("shop/b")], prefixes: ["shop/a."])
    let tail = try await engine.logTail(after: start, in: selection)
    #expect(tail.messages.map(\.text) == ["1", "2", "4", "7"])
    let end = try await engine.logEnd()
    #expect(tail.isAtEnd && tail.end == end)
    let page = try await engine.logTail(after: start, in: selection, maximumCount: 2)
    #expect(page.messages.map(\.text) == ["1", "2"])
    #expect(!page.isAtEnd && page.end == page.messages[1].timetoken)
    let none = try await engine.logTail(after: start, in: ChannelSelection(channels: [.orders]))
    #expect(none.messages.isEmpty && none.isAtEnd && none.end == end)
  }

  @Test(arguments: [EngineDatabase.selectTail, EngineDatabase.selectChannelsBetween])
  func `the tail is read by keys alone, without a scan or a sort`(sql: String) async throws {
    let steps = try await plain.pool.read { db in
      try String.fetchAll(
        db, sql: "EXPLAIN QUERY PLAN " + sql,
        arguments: StatementArguments(Array(1...sql.count { $0 == "?" })),
        adapter: RangeRowAdapter(3..<4))
    }
    #expect(!steps.isEmpty && steps.allSatisfy { $0.hasPrefix("SEARCH ") }, "\(steps)")
  }
}
