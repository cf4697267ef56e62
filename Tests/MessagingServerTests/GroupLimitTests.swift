import AccessControl
import MessagingQueue
import Realtime
import Testing

@testable import ApplicationStore
@testable import MessagingServer

/// The limits of channel groups, as PubNub's clients meet them.
@Suite struct GroupLimitTests {
  @Test func `a user subscribes to a full group, and a channel more is refused`() async throws {
    try await ServerFixture.run { server in
      let (id, subscribe) = (server.open.record.id, server.open.subscribe)
      let group = "/v1/channel-registration/sub-key/\(subscribe)/channel-group/g"
      let count = ApplicationLimits().groupChannelCount
      // By the store, because a list in a call has at most 1,000 names.
      try await server.store.add(
        (1..<count).map { try ChannelName("c\($0)") }, to: GroupName("g"), of: id)
      #expect(try await server.get("\(group)?add=last").status == 200)

      let poll = try await server.get(
        "/v2/subscribe/\(subscribe)/,/0?channel-group=g&uuid=u&tt=0")
      #expect(poll.status == 200, "\(poll.text)")
      let more = try await server.get("\(group)?add=more")
      #expect(more.status == 400, "\(more.text)")
      #expect(more.text.contains("Maximum channel count exceeded."))
    }
  }

  /// Adds groups `g0`, `g1` and so on with so many channels each.
  private static func add(_ counts: [Int], _ server: ServerFixture) async throws {
    for (number, count) in counts.enumerated() {
      try await server.store.add(
        (0..<count).map { try ChannelName("c\(number)-\($0)") }, to: GroupName("g\(number)"),
        of: server.open.record.id)
    }
    try await server.refresh()
  }

  @Test(arguments: [
    "/v2/subscribe/SUB/,/0?tt=1&", "/v2/presence/sub-key/SUB/channel/,/heartbeat?uuid=u&",
    "/v2/presence/sub-key/SUB/channel/,/leave?uuid=u&", "/v2/presence/sub-key/SUB/channel/,?",
    "/v2/presence/sub-key/SUB/channel/,/uuid/u?",
    "/v2/presence/sub-key/SUB/channel/,/uuid/u/data?state=%7B%7D&",
  ])
  func `a call with more than 3,000 channels through its groups is refused`(
    target: String
  ) async throws {
    try await ServerFixture.run { server in
      try await Self.add([2_000, 1_001], server)
      let target = target.replacing("SUB", with: server.open.subscribe)
      let answer = try await server.get("\(target)channel-group=g0,g1")
      #expect(answer.status == 400, "\(answer.text)")
      #expect(answer.text.contains("Too many channels"))
    }
  }

  @Test func `a full group is subscribed to with its presence, and a second one's presence is not`()
    async throws
  {
    try await ServerFixture.run { server in
      try await Self.add([2_000, 1_001], server)
      let target = "/v2/subscribe/\(server.open.subscribe)/,/0?channel-group="
      #expect(try await server.get("\(target)g0,g0-pnpres").status == 200)
      let refused = try await server.get("\(target)g0,g0-pnpres,g1-pnpres")
      #expect(refused.status == 400 && refused.text.contains("Too many channels"))
    }
  }

  @Test func `subscriptions to a group share its channels until they change`() async throws {
    try await ServerFixture.run { server in
      try await Self.add([2_000], server)
      let home = try #require(server.server.gate.home)
      let application = try #require(home.directory.application(server.open.record.id))
      func groups() throws -> [ChannelGroup] {
        try home.subscription(
          to: PresenceCall(channels: [], groups: [GroupName("g0"), GroupName("g0-pnpres")]),
          of: application
        ).groups
      }
      let first = try groups()
      #expect(first.map(\.name) == ["g0", "g0-pnpres"])
      #expect(try groups().elementsEqual(first) { $0 === $1 })
      try await server.store.add(
        [ChannelName("more")], to: GroupName("other"), of: application.id)
      try await server.refresh()
      #expect(try groups().elementsEqual(first) { $0 === $1 })
      try await server.store.remove(
        [ChannelName("c0-0")], from: GroupName("g0"), of: application.id)
      try await server.refresh()
      #expect(try !groups().contains { group in first.contains { $0 === group } })
    }
  }

  @Test func `a poll whose group grows beyond the channels of a call is refused`() async throws {
    try await ServerFixture.run { server in
      try await Self.add([2_000, 1_000], server)
      let target = "/v2/subscribe/\(server.open.subscribe)/,/0?channel-group=g0,g1"
      let place = try #require(ServerFixture.place(in: try await server.get(target).text))
      async let poll = server.get("\(target)&tt=\(place)")
      try await server.waitForPolls(1)
      try await server.store.add(
        [ChannelName("more")], to: GroupName("g1"), of: server.open.record.id)
      try await server.refresh()
      let more = Message(channel: try Channel("shop/more"), payload: [0x31])
      try await server.engine.publish(more)
      let answer = try await poll
      #expect(answer.status == 400 && answer.text.contains("Too many channels"), "\(answer.text)")
    }
  }

  @Test(arguments: [(EngineError.Code.diskFull, 503), (.busy, 503), (.damaged, 500)])
  func `an error of the engine below the tables has the engine's status`(
    code: EngineError.Code, status: Int
  ) {
    let error = ApplicationStoreError(
      translating: EngineError(code, "the engine failed"), during: "adding to a channel group")
    #expect(PubNubExchange.refusal(error).0 == status)
  }
}
