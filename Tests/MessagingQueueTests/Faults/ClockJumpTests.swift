import FileLayer
import FileRecording
import MessagingQueue
import QueueFixture
import TestSupport
import Testing

/// A wall clock that jumps by years, forward and back, during every operation.
@Suite struct ClockJumpTests {
  private let plain: PlainEngine
  private let channel = Channel.orders

  init() throws {
    plain = try PlainEngine()
  }

  /// From before 1970 to the last time that fits 64 bits of nanoseconds.
  private static let moments: [Int64] = [
    -1_000_000_000_000_000_000, 0, 1, 1_000_000_000_000_000_000, 1_600_000_000_000_000_000,
    1_700_000_000_000_000_000, 1_800_000_000_000_000_000, 4_000_000_000_000_000_000, .max,
  ]

  @Test(arguments: 0..<4 as Range<UInt64>)
  func `a jump of the wall clock by years loses no message and keeps the order`(
    seed: UInt64
  ) async throws {
    let engine = try plain.engine()
    let live = try await engine.messages(of: channel, after: .beginning)
    var random = SeededRandom(seed: seed)
    var published: [String] = []
    var timetokens: [Timetoken] = []
    var received: [String] = []
    for step in 0..<200 {
      let moment = Self.moments[random.next(Self.moments.count)]
      plain.time.setNow(UnixTime(nanoseconds: moment))
      if random.oneIn(3) {
        for delivery in try await engine.receive(from: channel, maximumCount: 2) {
          received.append(delivery.text)
          try await engine.acknowledge([delivery.token])
        }
      } else {
        let text = "\(step)"
        timetokens += try await engine.publish([text], to: channel)
        published.append(text)
      }
      _ = try await engine.statistics()
      try await engine.maintain()
    }
    #expect(timetokens == timetokens.sorted() && Set(timetokens).count == timetokens.count)
    // Every timetoken can be printed and read back.
    #expect(timetokens.allSatisfy { Timetoken($0.description) == $0 })
    while let delivery = try await engine.receive(from: channel).first {
      #expect(LeaseToken(delivery.token.description) == delivery.token)
      received.append(delivery.text)
      try await engine.acknowledge([delivery.token])
    }
    #expect(received == published)
    try await engine.publish(Message(channel: channel, payload: Array("last".utf8)))
    for try await message in live { #expect(message.payload == Array("last".utf8)); break }
    try await engine.stop()
  }

  @Test func `leases and delays of releases do not depend on the wall clock`() throws {
    try plain.database.publish(["a", "b"], to: channel)
    let held = try plain.database.receive(2, from: channel)
    try plain.database.release([held[1].token], after: .seconds(20))
    for moment in Self.moments {
      plain.time.setNow(UnixTime(nanoseconds: moment))
      #expect(try plain.database.receive(9, from: channel).isEmpty, "\(moment)")
    }
    plain.time.setNow(UnixTime(nanoseconds: 0))
    plain.time.advance(by: .seconds(20))
    #expect(try plain.database.receive(9, from: channel).map(\.text) == ["b"])
    plain.time.advance(by: .seconds(10))
    #expect(try plain.database.receive(9, from: channel).map(\.text) == ["a"])
  }

  @Test func `a message for a date comes after the clock is corrected`() throws {
    let noon = plain.time.now
    var message = Message(channel: channel, payload: Array("later".utf8))
    message.availability = .after(.seconds(60))
    message.timeToLive = .seconds(3600)
    _ = try plain.database.publish([message])
    plain.time.setNow(UnixTime(nanoseconds: 0))
    #expect(try plain.database.receive(9, from: channel).isEmpty)
    plain.time.setNow(UnixTime(nanoseconds: noon.nanoseconds + 60_000_000_000))
    #expect(try plain.database.receive(9, from: channel).map(\.text) == ["later"])
  }

  @Test func `retention keeps a message from the future after the clock is corrected`()
    async throws
  {
    let engine = try plain.engine()
    let today = plain.time.now
    var retention = Retention()
    retention.maximumAge = .seconds(3600)
    retention.discardsUnacknowledged = true
    try await engine.setRetention(retention, of: channel)
    plain.time.setNow(UnixTime(nanoseconds: today.nanoseconds + 300_000_000_000_000_000))
    try await engine.publish(Message(channel: channel, payload: [1]))
    plain.time.setNow(today)
    try await engine.publish(Message(channel: channel, payload: [2]))
    #expect(try await engine.maintain() == 0)
    #expect(try await engine.history(of: channel).map(\.payload) == [[1], [2]])
    try await engine.stop()
  }
}
