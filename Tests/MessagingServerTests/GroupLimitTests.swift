import AccessControl
import MessagingQueue
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

  @Test(arguments: [(EngineError.Code.diskFull, 503), (.busy, 503), (.damaged, 500)])
  func `an error of the engine below the tables has the engine's status`(
    code: EngineError.Code, status: Int
  ) {
    let error = ApplicationStoreError(
      translating: EngineError(code, "the engine failed"), during: "adding to a channel group")
    #expect(PubNubExchange.refusal(error).0 == status)
  }
}
