import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import MessagingClient

extension HostileTests {
  /// A hostile server of STOMP.
  @Suite struct STOMPTests {
    private static func client(_ server: HostileServer) throws -> STOMPClient {
      var configuration = STOMPConfiguration(
        server: "stomp://127.0.0.1:\(server.port)", application: "shop")
      configuration.answerTime = .seconds(30)
      configuration.backoff = Backoff(first: .milliseconds(20), maximum: .milliseconds(40))
      return try STOMPClient(configuration)
    }

    private static func readFrame(_ peer: HostileServer.Peer) {
      while let byte = peer.read(1).first, byte != 0 {}
    }

    /// A connection that always has bytes, for longer than a call takes, and gives receipts.
    private final class FloodLink: STOMPLink {
      private let frame: [UInt8]
      private let answers = Mutex(["CONNECTED\nversion:1.2\n\n\0"])
      private let rest = Mutex(300_000)

      init(_ frame: String) { self.frame = Array(frame.utf8) }

      func next() async -> STOMPLinkEvent? {
        let isOpen = rest.withLock { rest in
          rest -= 1
          return rest >= 0
        }
        guard isOpen else { return .lost(MessagingClientError(.unavailable, "lost")) }
        let answer = answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        return .bytes(answer.map { Array($0.utf8) } ?? frame)
      }

      func send(_ frame: EncodedSTOMPFrame) {
        var buffer = ByteBuffer()
        frame.write(to: &buffer)
        var decoder = STOMPDecoder()
        var bytes = Array(buffer.readableBytesView)[...]
        guard let receipt = try? decoder.next(&bytes)?["receipt"] else { return }
        answers.withLock { $0.append("RECEIPT\nreceipt-id:\(receipt)\n\n\0") }
      }

      func drop() { rest.withLock { $0 = 0 } }
    }

    @Test(
      arguments: [
        "\n", "RECEIPT\nreceipt-id:77\n\n\0", "MESSAGE\nsubscription:77\nmessage-id:1\n\n\0",
        "MESSAGE\nsubscription:none\nmessage-id:1\n\nbody\0",
      ])
    func `a flood that never pauses keeps no call from the client`(frame: String) async throws {
      let configuration = STOMPConfiguration(server: "stomp://127.0.0.1:1", application: "shop")
      let links = Mutex([FloodLink(frame)])
      let opener = STOMPLinkOpener { () throws(MessagingClientError) in
        guard let link = links.withLock({ $0.popLast() }) else {
          throw MessagingClientError(.cannotConnect, "the flood has ended")
        }
        return link
      }
      let client = STOMPClient(
        configuration,
        STOMPCredentials(configuration, try STOMPAddress(configuration.server).origin), opener,
        .silent)
      try await client.send([1], to: "/topic/a")
      await client.close()
    }

    @Test(arguments: ["/topic/a", "/queue/a"])
    func `a flood of messages that no one takes stops the reading`(destination: String)
      async throws
    {
      let head = "MESSAGE\nsubscription:1\nmessage-id:1\nack:1\n\n"
      let flood = Array((head + String(repeating: "a", count: 999) + "\0").utf8)
      let sent = Mutex(0)
      try await HostileServer.run { peer in
        Self.readFrame(peer)
        peer.send("CONNECTED\nversion:1.2\n\n\0")
        Self.readFrame(peer)
        peer.send("RECEIPT\nreceipt-id:3\n\n\0")
        while peer.send(flood) { sent.withLock { $0 += flood.count } }
      } _: { server in
        let client = try Self.client(server)
        let subscription = try await client.subscribe(to: destination)
        var last = 0
        var unchangedCount = 0
        // It stands still when all buffers on the way are full.
        try await eventually {
          let count = sent.withLock { $0 }
          unchangedCount = count == last ? unchangedCount + 1 : 0
          last = count
          return last > 0 && unchangedCount == 50
        }
        #expect(last < 48 << 20)
        server.stop()
        await client.close()
        _ = subscription
      }
    }
  }
}
