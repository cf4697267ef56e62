import FileLayer
import FileRecording
import GRDB
import MessagingQueue
import QueueFixture
import Testing

@Suite struct PublishTests {
  let channel = Channel.orders
  let engine: PlainEngine

  init() throws {
    engine = try PlainEngine()
  }

  @Test func `messages are received byte for byte and in order`() throws {
    let payloads: [[UInt8]] = [
      [], [0], Array(0...255), Array("a\nb".utf8), [0xFF, 0xFE],
      Array(repeating: 7, count: 1 << 20),
    ]
    let timetokens = try engine.database.publish(
      payloads.map { Message(channel: channel, payload: $0) })
    let deliveries = try engine.database.receive(100, from: channel)
    #expect(deliveries.map(\.payload) == payloads)
    #expect(deliveries.map(\.timetoken) == timetokens)
    #expect(deliveries.allSatisfy { $0.attempt == 1 && $0.channel == channel })
  }

  @Test func `a timetoken is the time in units of 100 ns, with 17 digits`() throws {
    engine.time.setNow(UnixTime(nanoseconds: 1_700_000_000_123_456_789))
    let timetoken = try engine.database.publish(["a"], to: channel)[0]
    #expect(timetoken.description == "17000000001234567")
  }

  @Test func `timetokens rise when the clock stands still, goes back or starts at 1970`() throws {
    var timetokens = try engine.database.publish(["a", "b"], to: channel)
    for seconds in [1_600_000_000, 0, -5, 1_700_000_000] as [Int64] {
      engine.time.setNow(UnixTime(nanoseconds: seconds * 1_000_000_000))
      timetokens += try engine.database.publish(["c", "d"], to: channel)
    }
    #expect(zip(timetokens, timetokens.dropFirst()).allSatisfy { $0 < $1 })
    #expect(timetokens.allSatisfy { $0.description.utf8.count == 17 })
  }

  @Test func `a clock that starts at 1970 still gives 17 digits`() throws {
    let time = ManualTimeSource(now: UnixTime(nanoseconds: 0))
    let engine = try PlainEngine(time: time)
    let timetoken = try engine.database.publish(["a"], to: channel)[0]
    #expect(timetoken.description == "10000000000000000")
  }

  @Test func `timetokens rise after the last message has left the log`() throws {
    let first = try engine.database.publish(["a"], to: channel)[0]
    let delivery = try engine.database.receive(1, from: channel)[0]
    try engine.database.acknowledge([delivery.token])
    engine.time.setNow(UnixTime(nanoseconds: 0))
    let second = try engine.secondDatabase().publish(["b"], to: channel)[0]
    #expect(first < second)
  }

  @Test func `an error from SQLite contains neither the payload nor the statement`() throws {
    try engine.pool.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TRIGGER refusal BEFORE INSERT ON message
          BEGIN SELECT RAISE(ABORT, 'no s3cret'); END
          """)
    }
    let error = try #require(throws: EngineError.self) {
      try engine.database.publish(["s3cret"], to: channel)
    }
    let beneath = try #require(error.underlying as? DatabaseError)
    #expect(beneath.extendedResultCode == .SQLITE_CONSTRAINT_TRIGGER)
    #expect(beneath.sql == nil && beneath.arguments == nil)
    var everything = ""
    dump(error, to: &everything)
    #expect(!everything.contains("s3cret"))
  }

  @Test func `a payload over the limit refuses its batch and is named`() throws {
    let configuration = EngineConfiguration { $0.maximumPayloadByteCount = 3 }
    let engine = try PlainEngine(configuration: configuration)
    let error = #expect(throws: EngineError.self) {
      try engine.database.publish(["abc", "abcd"], to: channel)
    }
    #expect(error?.code == .payloadTooLarge)
    #expect(error?.message == "message 2 of 2 has 4 bytes, the limit is 3")
    #expect(try engine.database.receive(10, from: channel).isEmpty)
  }

  @Test func `the default payload limit is 1 MiB`() throws {
    let large = Message(channel: channel, payload: Array(repeating: 0, count: 1 << 20 | 1))
    #expect(code { _ = try engine.database.publish([large]) } == .payloadTooLarge)
  }

  @Test func `a full disk throws diskFull and stores no part of the batch`() throws {
    try engine.database.publish(["before"], to: channel)
    let pageCount = try #require(try engine.number("PRAGMA page_count"))
    _ = try engine.number("PRAGMA max_page_count = \(pageCount + 2)")
    let big = (0..<20).map { _ in String(repeating: "x", count: 4096) }
    #expect(code { try engine.database.publish(big, to: channel) } == .diskFull)
    _ = try engine.number("PRAGMA max_page_count = 1000000")
    #expect(try engine.database.receive(99, from: channel).map(\.text) == ["before"])
  }

  @Test func `every transaction changes the commit number, an empty receive does not`() throws {
    var numbers: [Int64] = [try engine.database.statistics().commitNumber]
    func note() throws { numbers.append(try engine.database.statistics().commitNumber) }
    try engine.database.publish(["a", "b"], to: channel)
    try note()
    let deliveries = try engine.database.receive(2, from: channel)
    try note()
    try engine.database.acknowledge([deliveries[0].token])
    try note()
    try engine.database.release([deliveries[1].token])
    try note()
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 + 1 == $1 })
    // The first receive makes the consumer.
    _ = try engine.database.receive(1, from: Channel("empty"))
    try note()
    _ = try engine.database.receive(1, from: Channel("empty"))
    #expect(try engine.database.statistics().commitNumber == numbers.last)
  }

  @Test(arguments: ["", "a\nb", "a\u{0}", String(repeating: "é", count: 128)])
  func `a channel name that is empty, too long or unprintable is refused`(name: String) {
    #expect(code { _ = try Channel(name) } == .invalidChannel)
  }

  @Test func `two Unicode spellings of é are two channels`() throws {
    let composed = try Channel("caf\u{E9}")
    let decomposed = try Channel("cafe\u{301}")
    #expect(composed != decomposed)
    try engine.database.publish(["c"], to: composed)
    #expect(try engine.database.receive(1, from: decomposed).isEmpty)
    #expect(try engine.database.receive(1, from: composed).count == 1)
  }
}
