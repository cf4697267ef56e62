import Foundation
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// What the authorization endpoint of an application gets.
@Suite(.timeLimit(.minutes(10))) struct ServerChannelAuthorizerTests {
  /// Answers each form with an authorization, and tries to set a cookie.
  private static let endpoint: @Sendable (HostileServer.Peer) -> Void = { peer in
    while let head = peer.head() {
      let length = head.firstMatch(of: /(?i)content-length: (\d+)/).flatMap { Int($0.1) } ?? 0
      var body: [UInt8] = []
      while body.count < length {
        let bytes = peer.read(length - body.count)
        guard !bytes.isEmpty else { return }
        body += bytes
      }
      peer.send(answer("200 OK", ["Set-Cookie: session=7; Path=/"], #"{"auth":"k:5e"}"#))
    }
  }

  @Test func `the application's headers and fields reach the endpoint, and no cookie does`()
    async throws
  {
    try await HostileServer.run(Self.endpoint) { server in
      let bearer = SharedSecret(secret("Bearer s3cret"))
      let authorizer = try ServerChannelAuthorizer(url: "\(server.url)/pusher/auth?tenant=7") {
        request, fields in
        fields.headers["X-App-Version"] = "3"
        fields.secretHeaders["Authorization"] = bearer
        fields.parameters["user"] = "anna & bert"
        fields.parameters["channel_name"] = "private-other"
        fields.parameters["of"] = request.channel
      }
      for socketID in ["1.2", "1.3"] {
        let authorization = try await authorizer.authorize(
          ChannelAuthorizationRequest(channel: "private-a", socketID: socketID))
        #expect(authorization.auth == "k:5e")
      }
      let text = server.text
      #expect(text.ranges(of: "POST /pusher/auth?tenant=7 HTTP/1.1\r\n").count == 2)
      #expect(text.ranges(of: "X-App-Version: 3\r\n").count == 2)
      #expect(text.ranges(of: "Authorization: Bearer s3cret\r\n").count == 2)
      for socketID in ["1.2", "1.3"] {
        #expect(
          text.contains(
            "socket_id=\(socketID)&channel_name=private-a&of=private-a&user=anna%20%26%20bert"))
      }
      #expect(text.range(of: "cookie", options: .caseInsensitive) == nil)
      #expect(!text.contains("private-other"))
    }
  }

  @Test(arguments: [("0.0.0.0", "token"), ("0.0.0.0", "k:5e"), ("127.0.0.1", "token")])
  func `a token goes by plain ws to this machine alone, a signature to each server`(
    host: String, auth: String
  ) async throws {
    struct Fixed: ChannelAuthorizer {
      let auth: String

      func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization {
        ChannelAuthorization(auth: auth)
      }
    }
    let established = HostileWebSocket.text(
      #"{"event":"pusher:connection_established","data":{"socket_id":"1.2"}}"#)
    let confirmed = HostileWebSocket.text(
      #"{"event":"pusher_internal:subscription_succeeded","channel":"private-a","data":"{}"}"#)
    try await HostileServer.run { peer in
      guard let head = peer.head(), let handshake = try? HostileWebSocket.handshake(head) else {
        return
      }
      peer.send(handshake + established)
      while !peer.read(4096).isEmpty { peer.send(confirmed) }
    } _: { server in
      // The system connects 0.0.0.0 to this machine, and a client cannot know that.
      let url = server.url.replacing("127.0.0.1", with: host)
      let client = try PusherClient(
        PusherConfiguration(server: url, key: "k", authorizer: Fixed(auth: auth)))
      let error = await failure { try await client.subscribe(to: "private-a") }
      let isRefused = host == "0.0.0.0" && auth == "token"
      #expect(error?.code == (isRefused ? .forbidden : nil))
      #expect(error?.description.contains("others on the way can read them") != false)
      await client.close()
    }
  }

  @Test func `a public channel does not ask the authorizer`() async throws {
    struct Counting: ChannelAuthorizer {
      let requests: LockedCount

      func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization {
        requests.increase()
        return ChannelAuthorization(auth: "k:5e")
      }
    }
    let established = HostileWebSocket.text(
      #"{"event":"pusher:connection_established","data":{"socket_id":"1.2"}}"#)
    let confirmed = ["a", "private-a"].flatMap { channel in
      HostileWebSocket.text(
        #"{"event":"pusher_internal:subscription_succeeded","channel":"\#(channel)","data":"{}"}"#)
    }
    try await HostileServer.run { peer in
      guard let head = peer.head(), let handshake = try? HostileWebSocket.handshake(head) else {
        return
      }
      peer.send(handshake + established)
      while !peer.read(4096).isEmpty { peer.send(confirmed) }
    } _: { server in
      let requests = LockedCount()
      let client = try PusherClient(
        PusherConfiguration(
          server: server.url, key: "k", authorizer: Counting(requests: requests)))
      _ = try await client.subscribe(to: "a")
      #expect(requests.value == 0)
      _ = try await client.subscribe(to: "private-a")
      #expect(requests.value == 1)
      await client.close()
    }
  }
}

private final class LockedCount: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }

  func increase() { count.withLock { $0 += 1 } }
}
