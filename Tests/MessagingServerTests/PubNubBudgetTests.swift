import AccessControl
import Foundation
import MessagingQueue
import Realtime
import StrictJSON
import TestSupport
import Testing

@testable import MessagingServer

/// The bounds of single answers of PubNub's API.
@Suite struct PubNubBudgetTests {
  private static func value(_ answer: HTTPRequester.Answer) throws -> JSONValue {
    #expect(answer.status == 200, "\(answer.text.prefix(200))")
    return try JSONReader.value(answer.body)
  }

  /// Makes users present on each of the channels `c0`, `c1` and so on of the open application.
  private static func join(
    _ server: ServerFixture, users: Int, channels: Int, state: [UInt8]? = nil
  ) throws {
    let presence = try #require(server.server.gate.home).presence
    let channels = try (0..<channels).map { try Channel("shop/c\($0)") }
    for number in 0..<users {
      try presence.change { (presence, arrival, time) throws(PresenceRefusal) in
        try presence.join(
          UserID("u\(number)"), of: "shop", on: channels,
          state: state.map { state in Dictionary(uniqueKeysWithValues: channels.map { ($0, state) })
          }
            ?? [:],
          arrival: arrival, at: time)
      }
    }
  }

  private static func list(_ count: Int) -> String {
    (0..<count).map { "c\($0)" }.joined(separator: ",")
  }

  @Test func `here-now lists 10,000 users at most, and counts them all`() async throws {
    try await ServerFixture.run { server in
      try Self.join(server, users: 400, channels: 30)
      let path = "/v2/presence/sub-key/\(server.open.subscribe)"
      for target in ["\(path)/channel/\(Self.list(30))", path] {
        let payload = try Self.value(try await server.get(target)).member("payload")
        #expect(payload?.member("total_channels")?.integer == 30)
        #expect(payload?.member("total_occupancy")?.integer == 12_000)
        let channels = try #require(payload?.member("channels")?.members)
        #expect(channels.allSatisfy { $0.value.member("occupancy") == 400 })
        let listed = channels.map { $0.value.member("uuids")?.elements?.count ?? 0 }
        #expect(listed.count == 30 && listed.reduce(0, +) == 10_000, "\(listed)")
      }
    }
  }

  @Test func `here-now and states have 4 MiB at most`() async throws {
    try await ServerFixture.run { server in
      let state = Array(#"{"s":"\#(String(repeating: "x", count: 32_000))"}"#.utf8)
      try Self.join(server, users: 1, channels: 200, state: state)
      let path = "/v2/presence/sub-key/\(server.open.subscribe)/channel/\(Self.list(200))"
      for target in ["\(path)?state=1", "\(path)/uuid/u0"] {
        let answer = try await server.get(target)
        #expect(answer.body.count <= 4 << 20)
        let payload = try Self.value(answer).member("payload")
        let channels = try #require(payload?.member("channels")?.members)
        let whole = channels.count { $0.value.text.utf8.count > state.count }
        let states = channels.count { $0.value.text.utf8.elementsEqual(state) }
        #expect(max(whole, states) > 120, "\(whole) \(states)")
      }
    }
  }

  /// Publishes a message that history shows, and behind it so many that it leaves out.
  private static func hide(_ count: Int, _ server: ServerFixture) async throws -> Timetoken {
    let channel = try Channel("shop/c")
    let visible = try await server.engine.publish(Message(channel: channel, payload: [0x31]))
    var notes = MessageNotes()
    notes.isHidden = true
    let hidden = Message(channel: channel, payload: [0x32], headers: notes.headers)
    for start in stride(from: 0, to: count, by: 2_000) {
      try await server.engine.publish(
        [Message](repeating: hidden, count: min(2_000, count - start)))
    }
    return visible
  }

  @Test func `history looks at 10,000 messages that it leaves out, and says where to continue`()
    async throws
  {
    try await ServerFixture.run { server in
      let visible = try await Self.hide(10_050, server)
      let key = server.open.subscribe
      for path in [
        "/v2/history/sub-key/\(key)/channel/c?count=1",
        "/v3/history/sub-key/\(key)/channel/c?max=1",
      ] {
        let refused = try await server.get(path)
        #expect(refused.status == 400, "\(refused.text)")
        let message = try JSONReader.value(refused.body).member("error_message")?.string ?? ""
        let start = try #require(message.firstMatch(of: /start=(\d{17})/)?.output.1)
        let answer = try await server.get("\(path)&start=\(start)&include_token=1")
        #expect(answer.status == 200 && answer.text.contains(visible.description), "\(answer.text)")
      }
      let counts = try await server.get(
        "/v3/history/sub-key/\(key)/message-counts/c?timetoken=10000000000000000")
      #expect(try Self.value(counts).member("channels")?.member("c") == 10_000)
    }
  }

  @Test func `an answer of history has 4 MiB of JSON, however its messages grow by escapes`()
    async throws
  {
    try await ServerFixture.run { server in
      let channel = try Channel("shop/c")
      let payload = [UInt8](repeating: 1, count: 32_768)
      try await server.engine.publish(
        [Message](repeating: Message(channel: channel, payload: payload), count: 60))
      let key = server.open.subscribe
      for path in ["/v2/history/sub-key/\(key)/channel/c", "/v3/history/sub-key/\(key)/channel/c"] {
        let answer = try await server.get(path)
        #expect(answer.status == 200)
        #expect((3 << 20...4 << 20).contains(answer.body.count), "\(answer.body.count)")
      }
    }
  }
}
