import Foundation
import MessagingQueue
import Testing

@Suite struct ContentTests {
  private let plain: PlainEngine

  init() throws { plain = try PlainEngine() }

  private struct Mail: Codable, Equatable {
    var to: String
    var date: Date
  }

  @Test func `text, bytes, data and JSON are published and read back`() async throws {
    let engine = try plain.engine()
    let mail = Mail(to: "Ada", date: Date(timeIntervalSince1970: 1))
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    let name = "Ada"
    try await engine.publish([
      Message(channel: .orders, "Grüße an \(name)"),
      Message(channel: .orders, .bytes(Data([1, 0xFF]))),
      Message(channel: .orders, try .json(mail)),
      Message(channel: .orders, try .json(mail, encoder: encoder)),
      Message(channel: .orders, .text("a".dropFirst())),
    ])
    let deliveries = try await engine.receive(from: .orders, maximumCount: 9)
    #expect(deliveries[0].string == "Grüße an Ada")
    #expect(deliveries[1].payload == [1, 0xFF])
    #expect(deliveries[1].string == nil)
    #expect(try deliveries[2].decode(Mail.self) == mail)
    #expect(deliveries[3].string?.contains("1970-01-01T00:00:01Z") == true)
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    let read: Mail = try deliveries[3].decode(decoder: decoder)
    #expect(read == mail)
    #expect(deliveries[4].payload.isEmpty)
    #expect(try await engine.history(of: .orders)[2].decode(Mail.self) == mail)
  }

  @Test func `an error of encoding or decoding contains nothing of the value`() throws {
    let error = #expect(throws: EngineError.self) {
      try Message(channel: .orders, #"{"to":"s3cret","date":"s3cret"}"#).decode(Mail.self)
    }
    #expect(error?.code == .invalidPayload)
    #expect(error?.underlying == nil)
    #expect(error.map { "\($0)".contains("s3cret") } == false)
    let other = #expect(throws: EngineError.self) { try Content.json(["s3cret": Double.nan]) }
    #expect(other?.code == .invalidPayload)
    #expect(other.map { "\($0)".contains("s3cret") } == false)
  }

  @Test func `a message takes all its options in its initializer`() throws {
    let message = Message(
      channel: .orders, "a", headers: ["name": "value"], priority: try Priority(9),
      availability: .after(.seconds(5)), timeToLive: .seconds(60), deduplicationID: "id")
    var expected = Message(channel: .orders, payload: Array("a".utf8))
    expected.headers = ["name": "value"]
    expected.priority = try Priority(9)
    expected.availability = .after(.seconds(5))
    expected.timeToLive = .seconds(60)
    expected.deduplicationID = "id"
    #expect(message == expected)
    #expect(Message(channel: .orders, "a", orderingKey: "k").orderingKey == "k")
  }

  @Test func `a timetoken gives its date, and a date the place in the log`() throws {
    let date = Date(timeIntervalSince1970: 1_700_000_000)
    #expect(Timetoken(date).rawValue == 17_000_000_000_000_000)
    #expect(Timetoken(date).date == date)
    #expect(Timetoken(.distantPast).description == "10000000000000000")
    #expect(Timetoken(.distantFuture).description == "99999999999999999")
  }

  @Test func `a delivery shows its limit of attempts, and a release whether the message died`()
    async throws
  {
    let engine = try plain.engine()
    let audit = try Consumer("audit")
    try await engine.publish(["a", "b"], to: .orders)
    try await engine.addConsumer(audit, of: .orders, maximumAttempts: 2)
    let unlimited = try await engine.receive(from: .orders)[0]
    #expect(unlimited.maximumAttempts == nil && !unlimited.isLastAttempt)
    #expect(try await !engine.release(unlimited.token))
    for attempt in 1...2 {
      let held = try await engine.receive(from: .orders, for: audit, maximumCount: 2)
      #expect(held.map(\.maximumAttempts) == [2, 2])
      #expect(held.map(\.isLastAttempt) == [attempt == 2, attempt == 2])
      if attempt == 1 {
        #expect(try await engine.release(held.map(\.token)) == [])
      } else {
        try await engine.acknowledge(held[0].token)
        let error = await engineError { try await engine.release(held.map(\.token)) }
        #expect(error?.unknownLeases == [held[0].token])
        #expect(error?.deadLettered == [held[1].token])
      }
    }
    #expect(try await engine.deadLetters(of: .orders, for: audit).map(\.string) == ["b"])
  }
}
