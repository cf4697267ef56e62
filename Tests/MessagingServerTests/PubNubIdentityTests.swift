import AccessControl
import Foundation
import MessagingQueue
import Realtime
import Testing

@testable import MessagingServer

/// Who a caller of PubNub's API acts as, and what a deletion covers.
@Suite struct PubNubIdentityTests {
  @Test(arguments: [
    "start=0", "start=1", "start=00000000000000001", "start=10000000000000000", "start=",
    "start=0&end=0", "start=1&end=1", "end=99999999999999999",
  ])
  func `a deletion with a bound beyond all messages deletes none`(bounds: String) async throws {
    try await ServerFixture.run { server in
      try await server.grant([.read, .delete], "c", .everyone)
      try await server.refresh()
      let channel = try Channel("closed/c")
      for _ in 0..<2 { try await server.engine.publish(Message(channel: channel, payload: [0x31])) }
      let target = "/v3/history/sub-key/\(server.closed.subscribe)/channel/c"
      let answer = try await server.send("DELETE", "\(target)?\(bounds)")
      #expect(answer.status == (bounds == "start=" ? 400 : 200))
      #expect(try await server.engine.messageCount(of: channel) == 2)
      _ = try await server.send("DELETE", "\(target)?end=0")
      #expect(try await server.engine.messageCount(of: channel) == 0)
    }
  }
}
