import AccessControl
import ApplicationStore
import DataVault
import Foundation
import MessagingQueue
import TestSupport
import Testing

@testable import MessagingServer

/// A lock of the vault while clients are at the server.
@Suite struct LockTests {
  @Test func `a request on its way at a lock is not refused for want of a right`() async throws {
    try await ServerFixture.run({ $0.engine.unlockTimeout = .seconds(60) }) { server in
      let home = try #require(server.server.gate.home)
      await server.vault.lock()
      try await eventually { server.server.gate.home == nil }
      let application = try #require(
        home.directory.application(subscribeKey: server.open.subscribe))
      let decision = home.directory.decide(
        .anonymous, .subscribe, Resource(.channel(try ChannelName("c")), of: application.id),
        at: Date())
      #expect(decision.isAllowed)
      try await server.vault.unlock(with: credentials("secret"))
    }
  }

  @Test func `a lock releases what the server had of its home, beside clients of each protocol`()
    async throws
  {
    try await ServerFixture.run({ configuration in
      configuration.stompListening = [.init(ListenAddress("127.0.0.1:0")!)]
      configuration.engine.unlockTimeout = .seconds(60)
    }) { server in
      weak let home = server.server.gate.home
      weak let key = home?.directory.application(server.open.record.id)?.application.secretKey
      let pusher = try await PusherSocket.connect(server, server.open)
      let start = try await server.get("/v2/subscribe/\(server.open.subscribe)/c/0")
      let place = try #require(ServerFixture.place(in: start.text))
      async let poll = server.get("/v2/subscribe/\(server.open.subscribe)/c/0?tt=\(place)")
      try await server.waitForPolls(1)
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/c\nreceipt:r\n\n")
        _ = try await peer.next()
        #expect(home != nil && key != nil)
        await server.vault.lock()
        try await eventually { home == nil && key == nil }
      }
      #expect(try await poll.text.hasPrefix(#"{"t":{"t":"\#(place)""#))
      #expect(try await pusher.closeCode() == 4100)
      try await server.vault.unlock(with: credentials("secret"))
    }
  }
}
