import Foundation
import Synchronization
import TestSupport
import Testing

@testable import MessagingClient

extension HostileTests {
  /// Connections of Pusher's protocol to a hostile server.
  @Suite struct PusherTests {
    private typealias Script = @Sendable (HostileServer.Peer) -> Void

    private static func client(
      _ url: String, _ authorizer: (any ChannelAuthorizer)? = nil, pongTime: Duration = .seconds(2),
      waitingByteCount: Int = 16 << 20
    ) throws -> PusherClient {
      var configuration = PusherConfiguration(server: url, key: "k", authorizer: authorizer)
      configuration.answerTime = .seconds(2)
      configuration.pongTime = pongTime
      configuration.waitingByteCount = waitingByteCount
      configuration.backoff = Backoff(first: .milliseconds(20), maximum: .milliseconds(40))
      return try PusherClient(configuration)
    }

    private static func established(_ timeout: String = "120") -> [UInt8] {
      HostileWebSocket.text(
        #"{"event":"pusher:connection_established","data":{"socket_id":"1.2","activity_timeout":\#(timeout)}}"#
      )
    }

    private static func subscribed(_ channel: String = "a") -> [UInt8] {
      HostileWebSocket.text(
        #"{"event":"pusher_internal:subscription_succeeded","channel":"\#(channel)","data":"{}"}"#)
    }

    /// Opens a WebSocket on each connection, sends frames, and does what follows.
    private static func serve(
      _ frames: [UInt8], _ next: @escaping Script = { $0.wait() }
    ) -> Script {
      { peer in
        guard let head = peer.head(), let handshake = try? HostileWebSocket.handshake(head) else {
          return
        }
        peer.send(handshake + frames)
        next(peer)
      }
    }

    @Test(arguments: [
      4000, 4001, 4009, 4099, 4100, 4150, 4200, 4201, 4299, 4300, 1000, 1001, 1006, 1011, 0, 65535,
    ])
    func `each class of close codes is obeyed, without a storm of connections`(code: Int)
      async throws
    {
      let frames =
        Self.established() + Self.subscribed() + HostileWebSocket.close(UInt16(code), "why")
      try await HostileServer.run(Self.serve(frames, { _ in })) { server in
        let client = try Self.client(server.url)
        let subscription = try await client.subscribe(to: "a")
        let start = ContinuousClock.now
        let task = Task { () -> MessagingClientError? in
          do throws(MessagingClientError) {
            var events = subscription.makeAsyncIterator()
            while try await events.next() != nil {}
            return nil
          } catch {
            return error
          }
        }
        if (4000..<4100).contains(code) {
          #expect(server.connectionCount == 1)
          #expect(await task.value?.code == .refused)
        } else {
          let isBusy = (4100..<4200).contains(code)
          try await eventually { server.connectionCount >= (isBusy ? 2 : 4) }
          // The shortest wait is 10 ms; 4100 to 4199 waits a second, and 4200 to 4299 has one attempt without a wait.
          let count = server.connectionCount
          let time = ContinuousClock.now - start
          #expect(!isBusy || time >= .milliseconds(900))
          #expect(count <= Int(time / .milliseconds(10)) + 3)
        }
        await client.close()
        _ = await task.value
      }
    }

    @Test(arguments: [
      "", "garbage", "{}", #"{"event":"pusher:ping"}"#,
      #"{"event":"pusher:connection_established"}"#,
    ])
    func `a connection that is never established ends in time, whatever the server says`(
      text: String
    ) async throws {
      try await HostileServer.run(
        Self.serve([]) { peer in
          guard !text.isEmpty else { return peer.wait() }
          // No message establishes the connection.
          while peer.send(HostileWebSocket.text(text)) { usleep(5_000) }
        }
      ) { server in
        let client = try Self.client(server.url, pongTime: .milliseconds(200))
        let error = await failure { try await client.subscribe(to: "a") }
        #expect([.busy, .unavailable].contains(error?.code))
        await client.close()
      }
    }

    @Test func `an error without a code or a channel refuses the only subscription that waits`()
      async throws
    {
      let refusal = HostileWebSocket.text(
        #"{"event":"pusher:error","data":{"code":null,"message":"Invalid signature"}}"#)
      try await HostileServer.run(
        Self.serve(Self.established()) { peer in
          _ = peer.read(4096)
          peer.send(Self.subscribed())
          _ = peer.read(4096)
          peer.send(refusal)
          peer.wait()
        }
      ) { server in
        let client = try Self.client(server.url)
        _ = try await client.subscribe(to: "a")
        let error = await failure { try await client.subscribe(to: "b") }
        #expect(error?.code == .forbidden)
        #expect(error?.description.contains("Invalid signature") == true)
        await client.close()
      }
    }

    @Test func `a subscription that is never confirmed ends in time`() async throws {
      try await HostileServer.run(Self.serve(Self.established())) { server in
        let client = try Self.client(server.url, pongTime: .milliseconds(200))
        let error = await failure { try await client.subscribe(to: "a") }
        #expect(error?.code == .unavailable)
        await client.close()
      }
    }

    @Test(arguments: [
      "0", "-1", "-9223372036854775808", "9223372036854775807", "1e400", "99999999999999999999",
      "\"5\"", "null", "{}",
    ])
    func `an activity timeout of any value is within bounds`(timeout: String) async throws {
      try await HostileServer.run(Self.serve(Self.established(timeout) + Self.subscribed())) {
        server in
        let client = try Self.client(server.url)
        _ = try await client.subscribe(to: "a")
        // Nothing shows that no flood begins.
        try await Task.sleep(for: .milliseconds(50))
        // Neither a flood of pings nor an early end. A frame of the client has no more than 200 bytes.
        #expect(server.connectionCount == 1 && server.received.count < 1500)
        await client.close()
      }
    }

    private final class CountingAuthorizer: ChannelAuthorizer {
      let count = Mutex(0)
      func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization {
        count.withLock { $0 += 1 }
        return ChannelAuthorization(auth: "k:signature")
      }
    }

    @Test func `a connection that is established without end asks the authorizer once`()
      async throws
    {
      let flood = (0..<500).flatMap { _ in Self.established() }
      try await HostileServer.run(Self.serve(flood + Self.subscribed("private-a"))) { server in
        let authorizer = CountingAuthorizer()
        let client = try Self.client(server.url, authorizer)
        _ = try await client.subscribe(to: "private-a")
        // The confirmation is behind the flood, and the end behind what the flood asks for.
        await client.close()
        #expect(authorizer.count.withLock { $0 } <= 2)
      }
    }

    @Test(arguments: [0, 8_000])
    func `a flood of events ends the sequence of a slow application`(byteCount: Int) async throws {
      let data = String(repeating: "a", count: byteCount)
      let event = HostileWebSocket.text(#"{"event":"e","channel":"a","data":"\#(data)"}"#)
      let isSent = Mutex(false)
      try await HostileServer.run(
        Self.serve(Self.established() + Self.subscribed()) { peer in
          // Twice what can wait, and then an end that would be another error.
          for _ in 0..<(byteCount == 0 ? 2000 : 260) { peer.send(event) }
          peer.send(HostileWebSocket.close(4000))
          peer.wait()
          isSent.withLock { $0 = true }
        }
      ) { server in
        let client = try Self.client(server.url, waitingByteCount: 1 << 20)
        let subscription = try await client.subscribe(to: "a")
        // The application is slow: it begins when the client has taken everything.
        try await eventually { isSent.withLock { $0 } }
        var count = 0
        let error = await failure {
          for try await _ in subscription { count += 1 }
        }
        #expect(error?.code == .busy && count <= 1000)
        // One more can be on its way to the application.
        #expect((count - 1) * byteCount <= 1 << 20)
        // The channel is free again: what subscribes is asked for, and not refused as a second one.
        let again = await failure { try await client.subscribe(to: "a") }
        #expect(again?.code != .invalidArgument)
        await client.close()
      }
    }

    @Test func `members without end end the subscription`() async throws {
      let info = String(repeating: "a", count: 60_000)
      try await HostileServer.run(
        Self.serve(Self.established() + Self.subscribed("presence-a")) { peer in
          for number in 0..<40 {
            let frame =
              #"{"event":"pusher_internal:member_added","channel":"presence-a","data":{"user_id":"\#(number)","user_info":"\#(info)"}}"#
            guard peer.send(HostileWebSocket.text(frame)) else { return }
          }
          peer.wait()
        }
      ) { server in
        let client = try Self.client(server.url, CountingAuthorizer(), waitingByteCount: 1 << 20)
        let subscription = try await client.subscribe(to: "presence-a")
        let error = await failure {
          for try await _ in subscription {}
        }
        #expect(error?.code == .invalidAnswer || error?.code == .busy)
        await client.close()
      }
    }

    @Test func `what a server says in an error is one line`() async throws {
      let error = HostileWebSocket.text(
        #"{"event":"pusher:error","data":{"code":4001,"message":"a\r\n\u001b[2J\u202eb"}}"#)
      try await HostileServer.run(Self.serve(error, { _ in })) { server in
        let client = try Self.client(server.url)
        let error = await failure { try await client.subscribe(to: "a") }
        #expect(error?.code == .refused)
        #expect(
          error?.description.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7F }
            == true
        )
      }
    }

    @Test(arguments: [
      "[]", "1", "\"\"", "{\"event\":1}", "{\"event\":\"pusher:error\"}",
      "{\"event\":\"pusher:error\",\"data\":{\"code\":\"x\"}}",
      "{\"event\":\"pusher_internal:subscription_succeeded\"}",
      "{\"event\":\"pusher_internal:member_added\",\"channel\":\"a\"}",
      "{\"event\":\"pusher_internal:member_added\",\"channel\":\"a\",\"data\":{\"user_id\":{}}}",
      "{\"event\":\"pusher_internal:member_removed\",\"channel\":\"a\",\"data\":{\"user_id\":\"never\"}}",
      "{\"event\":\"pusher:subscription_error\",\"channel\":\"b\"}",
      "{\"event\":\"e\",\"channel\":\"b\"}",
      "{\"event\":\"pusher:unknown\",\"channel\":\"a\"}",
      "{\"event\":\"pusher:cache_miss\",\"channel\":\"b\"}",
    ])
    func `a message that is none, or for no subscription, is ignored`(text: String) async throws {
      let last = HostileWebSocket.text(#"{"event":"last","channel":"a","data":"1"}"#)
      let frames = Self.established() + Self.subscribed() + HostileWebSocket.text(text) + last
      try await HostileServer.run(Self.serve(frames)) { server in
        let client = try Self.client(server.url)
        var events = try await client.subscribe(to: "a").makeAsyncIterator()
        var name: String?
        while name == nil, let event = try await events.next() {
          if case .message(let message) = event { name = message.name }
        }
        #expect(name == "last" && server.connectionCount == 1)
        await client.close()
      }
    }
  }
}
