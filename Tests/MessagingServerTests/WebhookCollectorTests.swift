import AccessControl
import ApplicationStore
import Testing

@testable import MessagingServer

/// What is told to webhooks, when, and in which bodies.
@Suite struct WebhookCollectorTests {
  private let shop: ApplicationID
  private let start = ContinuousClock.now
  private var collector = WebhookCollector()

  init() throws {
    shop = try ApplicationID(1001)
    collector.setWanted([shop: Set(WebhookEventKind.allCases)])
  }

  private mutating func note(_ event: WebhookEvent, atMilliseconds time: Int) {
    collector.note(event, of: shop, at: start + .milliseconds(time))
  }

  /// The bodies that are due, without their time.
  private mutating func take(atMilliseconds time: Int) -> [String] {
    collector.take(at: start + .milliseconds(time), timeInMilliseconds: 7).flatMap(\.bodies).map {
      let text = String(decoding: $0, as: UTF8.self)
      #expect(text.hasPrefix(#"{"time_ms":7,"events":["#) && text.hasSuffix("]}"))
      return String(text.dropFirst(23).dropLast(2))
    }
  }

  private static func occupied(_ name: String) -> String {
    #"{"name":"channel_occupied","channel":"\#(name)"}"#
  }
  private static func vacated(_ name: String) -> String {
    #"{"name":"channel_vacated","channel":"\#(name)"}"#
  }

  @Test func `each event has the members that Pusher gives it, in one body`() throws {
    let events: [(WebhookEvent, String)] = [
      (.channelOccupied("a"), Self.occupied("a")), (.channelVacated("a"), Self.vacated("a")),
      (
        .memberAdded(channel: "presence-a", userID: "ü\""),
        #"{"name":"member_added","channel":"presence-a","user_id":"ü\""}"#
      ),
      (
        .memberRemoved(channel: "presence-a", userID: "u"),
        #"{"name":"member_removed","channel":"presence-a","user_id":"u"}"#
      ),
      (
        .client(
          channel: "private-a", name: "client-x", data: Array(#"{"n":1}"#.utf8), socketID: "1.2",
          userID: nil),
        #"{"name":"client_event","channel":"private-a","event":"client-x","data":"{\"n\":1}","socket_id":"1.2"}"#
      ),
      (
        .client(
          channel: "presence-a", name: "client-x", data: Array("x".utf8), socketID: "1.2",
          userID: "u"),
        #"{"name":"client_event","channel":"presence-a","event":"client-x","data":"x","socket_id":"1.2","user_id":"u"}"#
      ),
    ]
    for (event, json) in events { #expect(String(decoding: event.json, as: UTF8.self) == json) }
    let bytes = WebhookBody.bytes(events.map(\.0.json), timeInMilliseconds: 1_327_078_148_132)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"time_ms":1327078148132,"events":[\#(events.map(\.1).joined(separator: ","))]}"#)
    let body = try #require(WebhookBody(bytes))
    #expect(body.timeInMilliseconds == 1_327_078_148_132)
    #expect(body.bytes(of: Set(WebhookEventKind.allCases)) == bytes)
    #expect(
      body.bytes(of: [.channelVacated, .memberRemoved]).map { String(decoding: $0, as: UTF8.self) }
        == #"{"time_ms":1327078148132,"events":[\#(events[1].1),\#(events[3].1)]}"#)
    let one = try #require(
      WebhookBody(WebhookBody.bytes([events[0].0.json], timeInMilliseconds: 1)))
    #expect(one.bytes(of: [.clientEvent]) == nil)
    #expect(WebhookBody(Array("{}".utf8)) == nil)
  }

  @Test mutating func `events that come close together share a body`() {
    #expect(collector.nextDue == nil)
    note(.channelOccupied("a"), atMilliseconds: 0)
    note(.channelOccupied("b"), atMilliseconds: 60)
    #expect(take(atMilliseconds: 99) == [])
    #expect(collector.nextDue == start + .milliseconds(100))
    #expect(take(atMilliseconds: 100) == ["\(Self.occupied("a")),\(Self.occupied("b"))"])
    #expect(collector.nextDue == nil)
  }

  @Test mutating func `a channel that is vacated and occupied within 3 seconds gives nothing`() {
    note(.channelVacated("a"), atMilliseconds: 0)
    #expect(take(atMilliseconds: 2999) == [])
    note(.channelOccupied("a"), atMilliseconds: 2999)
    #expect(take(atMilliseconds: 10_000) == [])
    #expect(collector.nextDue == nil)
  }

  @Test mutating func `a channel that stays vacated is told after 3 seconds`() {
    note(.channelVacated("a"), atMilliseconds: 0)
    note(.channelVacated("b"), atMilliseconds: 1000)
    #expect(take(atMilliseconds: 2999) == [])
    #expect(take(atMilliseconds: 3000) == [])
    #expect(take(atMilliseconds: 3100) == [Self.vacated("a")])
    note(.channelOccupied("a"), atMilliseconds: 3200)
    #expect(take(atMilliseconds: 3300) == [Self.occupied("a")])
    #expect(take(atMilliseconds: 4100) == [])
    #expect(take(atMilliseconds: 4200) == [Self.vacated("b")])
  }

  @Test mutating func `a return counts for the last departure alone`() {
    note(.channelVacated("a"), atMilliseconds: 0)
    note(.channelOccupied("a"), atMilliseconds: 100)
    note(.channelVacated("a"), atMilliseconds: 2000)
    #expect(take(atMilliseconds: 4999) == [])
    #expect(take(atMilliseconds: 5000) == [])
    #expect(take(atMilliseconds: 5100) == [Self.vacated("a")])
  }

  @Test mutating func `a channel that comes and goes takes no room of the events of others`() {
    for number in 0..<WebhookCollector.waitingCount + 1 {
      let now = start + .microseconds(number)
      collector.note(.channelVacated("a"), of: shop, at: now)
      collector.note(.channelOccupied("a"), of: shop, at: now)
    }
    note(.channelOccupied("b"), atMilliseconds: 20)
    note(.channelVacated("c"), atMilliseconds: 20)
    #expect(take(atMilliseconds: 120) == [Self.occupied("b")])
    #expect(take(atMilliseconds: 3020) == [])
    #expect(take(atMilliseconds: 3120) == [Self.vacated("c")])
  }

  @Test mutating func `a user who returns within 3 seconds has not left, on that channel`() {
    note(.memberRemoved(channel: "presence-a", userID: "u"), atMilliseconds: 0)
    note(.memberRemoved(channel: "presence-a", userID: "v"), atMilliseconds: 0)
    note(.memberRemoved(channel: "presence-b", userID: "u"), atMilliseconds: 0)
    #expect(take(atMilliseconds: 1000) == [])
    note(.memberAdded(channel: "presence-a", userID: "u"), atMilliseconds: 1000)
    _ = take(atMilliseconds: 3000)
    #expect(
      take(atMilliseconds: 3100) == [
        #"{"name":"member_removed","channel":"presence-a","user_id":"v"},{"name":"member_removed","channel":"presence-b","user_id":"u"}"#
      ])
  }

  @Test mutating func `only what a webhook wants is collected`() throws {
    collector.setWanted([shop: [.channelOccupied]])
    note(.memberAdded(channel: "presence-a", userID: "u"), atMilliseconds: 0)
    note(.channelVacated("a"), atMilliseconds: 0)
    note(.channelOccupied("a"), atMilliseconds: 1)
    collector.note(.channelOccupied("a"), of: try ApplicationID(1002), at: start)
    #expect(take(atMilliseconds: 10_000) == [])
    note(.channelOccupied("b"), atMilliseconds: 10_000)
    collector.setWanted([:])
    #expect(collector.nextDue == nil)
  }

  @Test mutating func `a body has at most 100 events, and large ones are divided`() {
    for number in 0..<250 { note(.channelOccupied("\(number)"), atMilliseconds: 0) }
    #expect(take(atMilliseconds: 100).map { $0.count { $0 == "{" } } == [100, 100, 50])
    let data = [UInt8](repeating: 0x78, count: 10_000)
    for _ in 0..<60 {
      note(
        .client(channel: "private-a", name: "client-x", data: data, socketID: "1.2", userID: nil),
        atMilliseconds: 200)
    }
    let bodies = take(atMilliseconds: 300)
    #expect(bodies.count == 3 && bodies.allSatisfy { $0.utf8.count < 300 << 10 })
  }

  @Test mutating func `what has no room is dropped and counted`() {
    for number in 0..<10_005 { note(.channelOccupied("\(number)"), atMilliseconds: 0) }
    let taken = collector.take(at: start + .seconds(1), timeInMilliseconds: 0)
    #expect(taken.map(\.droppedCount) == [5])
    #expect(taken.map(\.bodies.count) == [100])
    #expect(collector.take(at: start + .seconds(2), timeInMilliseconds: 0).isEmpty)
    for number in 0..<10_005 { note(.channelVacated("\(number)"), atMilliseconds: 0) }
    #expect(
      collector.take(at: start + .seconds(1), timeInMilliseconds: 0).map(\.droppedCount) == [5])
    let data = [UInt8](repeating: 0x78, count: 10_000)
    collector.setWanted([:])
    collector.setWanted([shop: [.clientEvent]])
    for _ in 0..<1000 {
      note(
        .client(channel: "private-a", name: "client-x", data: data, socketID: "1.2", userID: nil),
        atMilliseconds: 0)
    }
    let large = collector.take(at: start + .seconds(1), timeInMilliseconds: 0)
    #expect(large.first?.droppedCount ?? 0 > 500)
  }

  // MARK: - Attempts

  @Test func `attempts wait longer and longer, and the last ends before 300 seconds`() {
    for attemptTime in [0, 1, 10] {
      var age = Duration.zero
      var delays: [Int64] = []
      for attempt in 1... {
        guard WebhookSchedule.allowsAttempt(atAge: age) else { break }
        age += .seconds(attemptTime)
        guard let delay = WebhookSchedule.delay(afterAttempt: attempt, atAge: age) else { break }
        delays.append(delay.components.seconds)
        age += delay
      }
      #expect(age < .seconds(300))
      #expect(
        delays.prefix(6) == [1, 2, 4, 8, 16, 32] && delays.dropFirst(6).allSatisfy { $0 == 60 })
      #expect(delays.count >= 8)
    }
    #expect(WebhookSchedule.allowsAttempt(atAge: .seconds(280)))
    #expect(!WebhookSchedule.allowsAttempt(atAge: .milliseconds(280_001)))
  }

  @Test func `a clock that was set back ends no sooner than the number of attempts`() {
    #expect(WebhookSchedule.delay(afterAttempt: 19, atAge: .seconds(-1_000_000)) == .seconds(60))
    #expect(WebhookSchedule.delay(afterAttempt: 20, atAge: .seconds(-1_000_000)) == nil)
  }
}
