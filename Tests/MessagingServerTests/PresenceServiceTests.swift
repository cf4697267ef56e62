import MessagingQueue
import Realtime
import Testing

@testable import MessagingServer

@Suite struct PresenceServiceTests {
  @Test func `expire() ends the presence of all users whose time has passed`() async throws {
    try await ServerFixture.run { server in
      let presence = try #require(server.server.gate.home).presence
      let channel = try Channel("shop/c")
      // More than one call of `Presence` looks at.
      for number in 0..<5_000 {
        try presence.change { (presence, arrival, time) throws(PresenceRefusal) in
          try presence.join(
            UserID("\(number)"), of: "shop", on: [channel], timeout: .seconds(1), arrival: arrival,
            at: time)
        }
      }
      presence.expire(at: .now + .seconds(1))
      #expect(presence.read { $0.occupancy(of: channel, of: "shop") } == 0)
    }
  }
}
