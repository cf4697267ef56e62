import Foundation
import MessageCipher
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOWebSocket
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

extension HostileTests {
  /// Secrets in requests, in memory and in descriptions, and what they could do to a request.
  @Suite struct SecretsTests {
    private static let password = "hunter2-hunter2"
    private static var shared: SharedSecret { SharedSecret(secret(password)) }

    /// A request with a secret in its target and in a header.
    private static func request() -> ClientRequest {
      var target = RequestTarget(path: "/x")
      target.add("auth", shared)
      var request = ClientRequest(
        method: .POST, target: target, headers: [("Authorization", SecretText(shared))])
      request.body = Array("body with \(password)".utf8)
      return request
    }

    @Test func `a request that was sent is zero in memory`() throws {
      let encoder = RequestEncoder(host: "h")
      let channel = EmbeddedChannel(handler: encoder)
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
      encoder.request = Self.request()
      let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "")
      channel.writeAndFlush(HTTPClientRequestPart.head(head), promise: nil)
      // One buffer, which was large enough from the beginning, so that no copy of it was left behind.
      let sent = try #require(try channel.readOutbound(as: ByteBuffer.self))
      #expect(sent.readableBytes > 100 && sent.readableBytesView.allSatisfy { $0 == 0 })
      #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
      _ = try channel.finish()
    }

    @Test func `a text that a WebSocket has sent is zero in memory`() throws {
      let channel = EmbeddedChannel()
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
      let frames = try WebSocketFrames.configure(channel, Inbox(), messageByteCount: 1000)
      let socket = WebSocket(channel, frames, Inbox())
      var text = channel.allocator.buffer(capacity: 100)
      SecretText(Self.shared).write(to: &text)
      let promise = channel.eventLoop.makePromise(of: Void.self)
      promise.futureResult.whenComplete { [text] _ in text.wipe() }
      frames.value.send(.text, text, promise)
      #expect(text.readableBytesView.allSatisfy { $0 == 0 })
      // The mask and the masked copy, which are the text together.
      var sentCount = 0
      while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
        sentCount += bytes.readableBytes
        #expect(bytes.readableBytesView.allSatisfy { $0 == 0 })
      }
      #expect(sentCount == 2 + 4 + Self.password.utf8.count)
      _ = socket
      _ = try channel.finish()
    }

    @Test func `no description of a configuration, a client or a request has a secret`() throws {
      var pubNub = PubNubConfiguration(
        server: "http://localhost", subscribeKey: "s", publishKey: "p", userID: "u")
      pubNub.authKey = Self.shared
      pubNub.secretKey = Self.shared
      pubNub.challenges = challenges { _ in ("user", Self.password) }
      let authorizer = SecretKeyAuthorizer(key: "k", secretKey: Self.shared)
      let pusher = PusherConfiguration(server: "http://localhost", key: "k", authorizer: authorizer)
      let publisher = try PusherPublisher(
        server: "http://localhost", applicationID: "1", key: "k", secretKey: Self.shared)
      var fields = ServerChannelAuthorizer.Fields()
      fields.secretHeaders = ["Authorization": Self.shared]
      let values: [Any] = [
        pubNub, try PubNubClient(pubNub), pusher, try PusherClient(pusher), authorizer, publisher,
        fields, Self.shared, SecretText(Self.shared), Self.request().target, Self.request().headers,
        ChannelAuthorization(auth: "a", channelKey: Self.shared),
        ChallengeResponse.self, try Location("https://user:\(Self.password)@h/"),
      ]
      for value in values {
        var text = String(describing: value) + String(reflecting: value)
        dump(value, to: &text)
        #expect(!text.contains(Self.password), "\(type(of: value))")
        #expect(!text.contains("104, 117, 110, 116"), "\(type(of: value)) as bytes")
      }
    }

    @Test func `a token that is revoked and a signal are in no error, and are signed`() async throws
    {
      try await HostileServer.run { peer in
        while peer.head() != nil {
          peer.send(answer("401 Unauthorized", ["WWW-Authenticate: Unknown realm=\"r\""]))
        }
      } _: { server in
        var configuration = PubNubConfiguration(
          server: server.url, subscribeKey: "sub", publishKey: "pub", userID: "u")
        configuration.secretKey = SharedSecret(secret("key"))
        configuration.challenges = challenges { _ in nil }
        let client = try PubNubClient(configuration)
        let revoked = await failure {
          try await client.revokeToken(secret("p0F2/\(Self.password)="))
        }
        let signalled = await failure {
          try await client.signal(json: Array("\"\(Self.password)\"".utf8), to: "a")
        }
        for error in [revoked, signalled] {
          #expect(error?.code == .unauthenticated)
          #expect(error.map { "\($0)".contains("hunter2") } == false)
        }
        let token = "/v3/pam/sub/grant/p0F2%2F\(Self.password)%3D"
        let signal = "/signal/pub/sub/0/a/0/%22\(Self.password)%22"
        let lines = server.text.split(separator: "\r\n").filter { $0.hasSuffix(" HTTP/1.1") }
        #expect(lines.count == 2)
        for (line, (method, path)) in zip(lines, [("DELETE", token), ("GET", signal)]) {
          let target = try #require(line.split(separator: " ").dropFirst().first)
          let parts = target.split(separator: "?")
          #expect(parts.first == path[...])
          let query = try #require(parts.last).split(separator: "&")
          let unsigned = query.filter { !$0.hasPrefix("signature=") }.joined(separator: "&")
          let text = Array("\(method)\npub\n\(path)\n\(unsigned)\n".utf8)
          let code = try HMAC.sha256(key: secret("key"), message: text.span.bytes)
          let digits = Data(code).base64EncodedString().replacing("+", with: "-")
            .replacing("/", with: "_").prefix { $0 != "=" }
          #expect(query.contains("signature=v2.\(digits)"))
        }
      }
    }

    @Test func `a token is not sent to another machine without TLS`() async throws {
      var configuration = PubNubConfiguration(
        server: "http://192.0.2.1", subscribeKey: "sub", publishKey: "pub", userID: "u")
      configuration.secretKey = SharedSecret(secret("key"))
      let client = try PubNubClient(configuration)
      let error = await failure { try await client.revokeToken(secret("token")) }
      #expect(error?.code == .invalidArgument)
      var target = RequestTarget(path: "/x")
      target.append(confidential: Self.shared)
      #expect(target.text.hasSecret && !"\(target)".contains("hunter2"))
    }

    // MARK: - Injection

    static let injections = [
      "a\r\nX: y", "a\nX: y", "a\rX", "a\0b", "a\u{7F}", "a b", "a&b=c", "a?b#c", "a/../b", "ä",
      "\u{2028}",
    ]

    @Test(arguments: injections)
    func `what a user, a channel, a key or a parameter has adds nothing to a request`(
      text: String
    ) async throws {
      try await HostileServer.run { peer in
        while let head = peer.head() {
          let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
          var rest = length.flatMap { Int($0.dropFirst(16)) } ?? 0
          while rest > 0 { rest -= max(peer.read(rest).count, 1) }
          peer.send(answer("200 OK", [], "[1,\"Sent\",\"17\"]"))
        }
      } _: { server in
        var configuration = PubNubConfiguration(
          server: server.url, subscribeKey: text, publishKey: text, userID: text)
        configuration.authKey = SharedSecret(secret(text))
        configuration.secretKey = SharedSecret(secret(text))
        let client = try PubNubClient(configuration)
        var publication = PubNubPublication()
        (publication.meta, publication.customType) = (text, text)
        try await client.publish(json: Array("\"x\"".utf8), to: text, publication)
        try await client.signal(json: Array(text.utf8), to: text)
        _ = try? await client.hereNow(on: [text, text])
        _ = try? await client.add([text], toGroup: text)
        _ = try? await client.grant(
          .read, channels: [text], authKeys: [SharedSecret(secret(text))], lifetime: nil)
        let publisher = try PusherPublisher(
          server: server.url, applicationID: text, key: text, secretKey: SharedSecret(secret(text)))
        try await publisher.trigger(text, data: text, on: [text], excluding: text)
        for line in server.text.components(separatedBy: "\r\n") where line.hasSuffix("HTTP/1.1") {
          #expect(line.split(separator: " ", omittingEmptySubsequences: false).count == 3)
          #expect(line.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && !line.contains("/../"))
        }
        #expect(!server.text.contains("\nX: y"))
        #expect(!server.text.utf8.contains(0) || text.utf8.contains(0))
      }
    }

    @Test(arguments: [
      "a\r\nX: y", "a\nX: y", "a\0b", "a\u{7F}", "a:b", "a b", "", "Host", "content-length",
      "Transfer-Encoding",
    ])
    func `a header of the application that is none, or ends the request elsewhere, is refused`(
      name: String
    ) async throws {
      try await HostileServer.run {
        $0.wait()
      } _: { server in
        for isName in [true, false]
        where isName || name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
          let authorizer = try ServerChannelAuthorizer(url: "\(server.url)/auth") { _, fields in
            fields.headers[isName ? name : "X-App"] = isName ? "v" : name
            if !isName { fields.secretHeaders["X-Secret"] = SharedSecret(secret(name)) }
          }
          let error = await failure {
            try await authorizer.authorize(
              ChannelAuthorizationRequest(channel: "a", socketID: "1.2"))
          }
          #expect(error?.code == .invalidArgument)
        }
        #expect(server.connectionCount == 0)
      }
    }

    @Test(
      arguments: ["user\r\nX: y", "us\0er", "user\n", "a:b"], ["password", "pass\r\nword", "p\0"])
    func `a user or a password with control characters is not sent`(
      user: String, password: String
    ) async throws {
      try await HostileServer.run { peer in
        while peer.head() != nil {
          peer.send(answer("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""]))
        }
      } _: { server in
        let transport = try Transport.to(
          server.url, .system, challenges { _ in (user, password) })
        let error = await failure { try await transport.get() }
        #expect(error?.authentication == .invalidCredentials)
        #expect(!server.text.contains("Authorization"))
      }
    }
  }
}
