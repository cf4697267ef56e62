import AccessControl
import ApplicationStore
import DataVault
import Foundation
import MessagingQueue
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// Credentials in the handshakes of WebSockets, frame by frame.
@Suite struct HandshakeLoginTests {
  static let challenges = Challenge.all(realm: "closed").map { "WWW-Authenticate: \($0.field)" }

  private static func basic(_ text: String, _ scheme: String = "Basic") -> String {
    "Authorization: \(scheme) \(Data(text.utf8).base64EncodedString())\r\n"
  }

  private static let right = basic("ana:right password")

  /// A server whose closed application has the user `ana`, who can read `c`, `private-c` and `presence-c`.
  private static func run(
    _ configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (ServerFixture) async throws -> Void
  ) async throws {
    try await ServerFixture.run(configure) { server in
      for channel in ["c", "private-c", "presence-c"] {
        try await server.grant(.read, channel, .user(Name("ana")))
      }
      try await server.put(user: "ana", "right password")
      try await body(server)
    }
  }

  private static func connect(
    _ server: ServerFixture, _ headers: String, keys: ServerFixture.Keys? = nil
  ) async throws -> PusherSocket {
    let key = (keys ?? server.closed).subscribe
    let socket = try await PusherSocket.open(
      server, "/app/\(key)?protocol=7", headers: headers)
    _ = try await socket.next("pusher:connection_established")
    return socket
  }

  /// The answer to a handshake that is refused.
  private static func refusal(
    _ server: ServerFixture, _ headers: String, _ target: String? = nil
  ) async throws -> String {
    let target = target ?? "/app/\(server.closed.subscribe)?protocol=7"
    let socket = try await PusherSocket.open(server, target, headers: headers)
    _ = try await socket.wait("the end") { $0.last == .gone ? true : nil }
    return socket.answer
  }

  private static func challenges(in answer: String) -> [String] {
    answer.split(separator: "\r\n").filter { $0.hasPrefix("WWW-Authenticate:") }.map(String.init)
  }

  private static func subscribes(
    _ socket: PusherSocket, _ channel: String, auth: String = "", data: String? = nil
  ) async throws {
    try await socket.subscribe(channel, auth: auth, data: data)
    _ = try await socket.next("pusher_internal:subscription_succeeded", on: channel)
  }

  private static func refusal(
    _ socket: PusherSocket, _ channel: String, auth: String = "", data: String? = nil
  ) async throws -> String {
    try await socket.subscribe(channel, auth: auth, data: data)
    return try await socket.next("pusher:subscription_error", on: channel)
  }

  // MARK: - Pusher

  @Test func `a user of the handshake subscribes without auth to what the user can read`()
    async throws
  {
    try await Self.run { server in
      for scheme in ["Basic", "basic", "Application Basic", "APPLICATION BASIC"] {
        let socket = try await Self.connect(server, Self.basic("ana:right password", scheme))
        for channel in ["c", "private-c"] { try await Self.subscribes(socket, channel) }
        let lacking = try await Self.refusal(socket, "private-d")
        #expect(lacking.contains(#"\"status\":403"#))
      }
      // Without the field nothing has changed.
      let anonymous = try await Self.connect(server, "")
      #expect(try await Self.refusal(anonymous, "private-c").contains("auth is missing"))
      #expect(try await Self.refusal(anonymous, "c").contains(#"\"status\":403"#))
    }
  }

  @Test func `a token of the handshake subscribes without auth, and ends with its revocation`()
    async throws
  {
    try await Self.run { server in
      let token = try await server.token(for: "private-t")
      let socket = try await Self.connect(server, "Authorization: Application Token \(token)\r\n")
      try await Self.subscribes(socket, "private-t")
      #expect(try await Self.refusal(socket, "private-c").contains(#"\"status\":403"#))
      try await server.revoke(token)
      let ended = try await socket.next("pusher:subscription_error", on: "private-t")
      #expect(ended.contains("the token was revoked"))
      let again = try await Self.refusal(
        server, "Authorization: Application Token \(token)\r\n")
      #expect(again.hasPrefix("HTTP/1.1 401 "))
      #expect(Self.challenges(in: again) == Self.challenges)
    }
  }

  @Test func `what names no one is answered by 401 with each challenge, before the upgrade`()
    async throws
  {
    try await Self.run { server in
      let expired = try TokenContents(
        issue: Date(timeIntervalSinceNow: -120), minutes: 1, resources: TokenRights())
      let signer = try await server.store.signer(of: server.closed.record.id)
      let foreign = try await server.store.signer(of: server.open.record.id)
      let other = try TokenContents(issue: Date(), minutes: 1, resources: TokenRights())
      for field in [
        Self.basic("ana:wrong password"), Self.basic("missing:right password"),
        "Authorization: Bearer abc\r\n", "Authorization: Basic !\r\n", Self.right + Self.right,
        "Authorization: Application Token abc\r\n",
        "Authorization: Application Token \(try signer.issue(expired))\r\n",
        "Authorization: Application Token \(try foreign.issue(other))\r\n",
      ] {
        let answer = try await Self.refusal(server, field)
        #expect(answer.hasPrefix("HTTP/1.1 401 "), "\(field)")
        #expect(Self.challenges(in: answer) == Self.challenges, "\(field)")
      }
    }
  }

  @Test func `without users, a password is ignored and a wrong token asks for a token`()
    async throws
  {
    try await Self.run { server in
      let socket = try await Self.connect(server, Self.right, keys: server.open)
      try await Self.subscribes(socket, "c")
      let answer = try await Self.refusal(
        server, "Authorization: Application Token abc\r\n", "/app/\(server.open.subscribe)")
      #expect(answer.hasPrefix("HTTP/1.1 401 "))
      #expect(
        Self.challenges(in: answer) == [#"WWW-Authenticate: Application Token realm="shop""#])
      let unknown = try await PusherSocket.open(server, "/app/none?protocol=7", headers: Self.right)
      #expect(try await unknown.closeCode() == 4001)
    }
  }

  @Test func `guesses at handshakes wait as those over HTTP`() async throws {
    try await Self.run { server in
      // Each wait is longer than the last one, so that a slow machine meets one too.
      var waiting = ""
      for number in 0..<12 where !waiting.hasPrefix("HTTP/1.1 429 ") {
        waiting = try await Self.refusal(server, Self.basic("ana:wrong password \(number)"))
        if number < 3 { #expect(waiting.hasPrefix("HTTP/1.1 401 ")) }
      }
      #expect(waiting.hasPrefix("HTTP/1.1 429 "))
      #expect(waiting.contains("\r\nRetry-After: "))
      #expect(Self.challenges(in: waiting).isEmpty)
    }
  }

  @Test(arguments: [true, false])
  func `a removed user and a new password end subscriptions`(
    removes: Bool
  ) async throws {
    try await Self.run { server in
      let socket = try await Self.connect(server, Self.right)
      try await Self.subscribes(socket, "private-c")
      if removes {
        try await server.store.removeUser(Name("ana"), of: server.closed.record.id)
      } else {
        try await server.put(user: "ana", "new password")
      }
      let ended = try await socket.next("pusher:subscription_error", on: "private-c")
      #expect(ended.contains(removes ? "has no such user" : "has another password now"))
      #expect(try await Self.refusal(socket, "c").contains(#"\"status\":403"#))
    }
  }

  @Test func `an auth of the subscription counts instead of the handshake`() async throws {
    try await Self.run { server in
      let socket = try await Self.connect(server, Self.right)
      // A token that reads another channel.
      let token = try await server.token(for: "private-t")
      #expect(
        try await Self.refusal(socket, "private-c", auth: token).contains(#"\"status\":403"#))
      try await Self.subscribes(socket, "private-t", auth: token)
      // A signature of the application's own endpoint.
      let text = Array("\(try socket.socketID):private-s".utf8)
      let code = try HMAC.sha256(
        key: secret(server.closed.secretKey), message: text.span.bytes
      ).map { String(format: "%02x", $0) }.joined()
      try await Self.subscribes(socket, "private-s", auth: "\(server.closed.subscribe):\(code)")
      let wrong = try await Self.refusal(socket, "private-s", auth: "wrong")
      #expect(wrong.contains(#"\"status\":401"#))
    }
  }

  @Test func `a user is present under its own name alone`() async throws {
    try await Self.run { server in
      let socket = try await Self.connect(server, Self.right)
      let forged = try await Self.refusal(socket, "presence-c", data: #"{"user_id":"bob"}"#)
      #expect(forged.contains("user_id is not the name of the user"))
      try await Self.subscribes(socket, "presence-c", data: #"{"user_id":"ana"}"#)
    }
  }

  @Test func `a web page of another server cannot use a password that its browser keeps`()
    async throws
  {
    try await Self.run { server in
      for origin in [
        "https://other.example", "null", "http://127.0.0.1:1", "http://\(server.origin).other",
      ] {
        let answer = try await Self.refusal(server, Self.right + "Origin: \(origin)\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(origin)")
      }
      _ = try await Self.connect(server, Self.right + "Origin: http://\(server.origin)\r\n")
      // No browser sends this by itself.
      _ = try await Self.connect(
        server,
        Self.basic("ana:right password", "Application Basic") + "Origin: https://other.example\r\n")
    }
  }

  @Test func `a handshake with credentials waits for an unlock, and is never anonymous`()
    async throws
  {
    try await Self.run({ $0.engine.unlockTimeout = .seconds(60) }) { server in
      await server.vault.lock()
      try await eventually { server.server.gate.home == nil }
      let target = "/app/\(server.closed.subscribe)?protocol=7"
      let refused = try await PusherSocket.open(server, target, headers: Self.right)
      #expect(try await refused.closeCode() == 4100)
      let wrong = try await PusherSocket.open(
        server, target, headers: Self.basic("ana:wrong password"))
      let right = try await PusherSocket.open(server, target, headers: Self.right)
      try await eventually { server.server.connections.count >= 2 }
      try await server.vault.unlock(with: credentials("secret"))
      _ = try await right.next("pusher:connection_established")
      try await Self.subscribes(right, "private-c")
      _ = try await wrong.wait("the end") { $0.last == .gone ? true : nil }
      #expect(wrong.answer.hasPrefix("HTTP/1.1 401 "))
    }
  }

  // MARK: - STOMP

  private static let connect = "CONNECT\naccept-version:1.2\nhost:closed\n\n\0"

  @Test func `a path that names the application verifies credentials before the upgrade`()
    async throws
  {
    try await Self.run { server in
      let wrong = try await Self.refusal(
        server, Self.basic("ana:wrong password"), "/stomp/closed")
      #expect(wrong.hasPrefix("HTTP/1.1 401 "))
      #expect(Self.challenges(in: wrong) == Self.challenges)
      #expect(try await Self.refusal(server, Self.right, "/stomp").hasPrefix("HTTP/1.1 400 "))
      let socket = try await PusherSocket.open(server, "/stomp/closed", headers: Self.right)
      // The host of a client can be the name of the server.
      try await socket.send("CONNECT\naccept-version:1.2\nhost:127.0.0.1\n\n\0")
      _ = try await Self.frame("CONNECTED", socket)
      try await socket.send("SUBSCRIBE\nid:1\ndestination:/topic/c\nreceipt:r\n\n\0")
      _ = try await Self.frame("RECEIPT", socket)
      try await server.put(user: "ana", "new password")
      #expect(try await Self.frame("ERROR", socket).contains("has another password now"))
    }
  }

  @Test
  func
    `a path that names no application is answered as one without users, and then as a wrong key`()
    async throws
  {
    try await Self.run { server in
      for headers in ["", Self.right] {
        let unknown = try await PusherSocket.open(server, "/stomp/none", headers: headers)
        try await unknown.send("CONNECT\naccept-version:1.2\nhost:none\n\n\0")
        let shop = try await PusherSocket.open(server, "/stomp/shop", headers: headers)
        try await shop.send("CONNECT\naccept-version:1.2\nhost:shop\n\n\0")
        let answers = [
          try await Self.frame("ERROR", unknown), try await Self.frame("ERROR", shop),
        ]
        #expect(answers[0] == answers[1])
        #expect(answers[0].contains(STOMPEnding.unknownClient.message))
      }
      let token = "Authorization: Application Token abc\r\n"
      let unknown = try await Self.refusal(server, token, "/stomp/none")
      let shop = try await Self.refusal(server, token, "/stomp/shop")
      #expect(unknown.replacing("none", with: "shop") == shop)
    }
  }

  @Test func `web pages of other origins open no WebSocket of STOMP, unless they are allowed`()
    async throws
  {
    try await Self.run({
      $0.stompOrigins = Set(
        ["https://app.example", "http://page.example:8080"].compactMap { WebOrigin($0) })
    }) { server in
      let own = "http://\(server.origin)"
      for path in ["/stomp", "/stomp/shop"] {
        for origin in [
          "https://other.example", "null", "http://127.0.0.1:1", "\(own).other",
          "http://app.example",
          "https://app.example:8443", "\(own)\r\nOrigin: https://other.example",
        ] {
          let answer = try await Self.refusal(server, "Origin: \(origin)\r\n", path)
          #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(origin)")
        }
        for origin in ["", own, "https://app.example", "HTTP://page.example:8080"] {
          let field = origin.isEmpty ? "" : "Origin: \(origin)\r\n"
          let socket = try await PusherSocket.open(server, path, headers: field)
          try await socket.send("\(server.open.stompConnect)\0")
          _ = try await Self.frame("CONNECTED", socket)
        }
      }
      // The keys of the other protocols are in web pages of every origin.
      _ = try await Self.connect(server, "Origin: https://other.example\r\n")
    }
  }

  @Test func `an origin is a scheme, a host and a port that the scheme does not imply`() {
    for (text, read) in [
      ("https://a.example", "https://a.example"), ("HTTPS://A.example:443", "https://a.example"),
      ("http://a:80", "http://a"), ("http://a:443", "http://a:443"),
      ("http://[::1]:1", "http://[::1]:1"),
    ] {
      #expect(WebOrigin(text)?.description == read)
    }
    for text in [
      "", "a", "https://", "ftp://a", "https://a/", "https://u@a", "null", "*", "https://é",
    ] {
      #expect(WebOrigin(text) == nil, "\(text)")
    }
  }

  @Test func `without credentials, the path gives no right and host must not contradict it`()
    async throws
  {
    try await Self.run { server in
      let anonymous = try await PusherSocket.open(server, "/stomp/closed")
      try await anonymous.send("\(server.closed.stompConnect)\0")
      #expect(try await Self.frame("ERROR", anonymous).contains("access refused"))
      let other = try await PusherSocket.open(server, "/stomp/closed", headers: Self.right)
      try await other.send("CONNECT\naccept-version:1.2\nhost:shop\n\n\0")
      #expect(
        try await Self.frame("ERROR", other).contains(STOMPEnding.unknownClient.message))
    }
  }

  @Test func `credentials that came while the vault was locked never make an anonymous client`()
    async throws
  {
    try await Self.run({ $0.engine.unlockTimeout = .seconds(60) }) { server in
      await server.vault.lock()
      try await eventually { server.server.gate.home == nil }
      let socket = try await PusherSocket.open(server, "/stomp/closed", headers: Self.right)
      try await eventually { socket.answer.hasPrefix("HTTP/1.1 101 ") }
      try await server.vault.unlock(with: credentials("secret"))
      try await eventually { server.server.gate.home != nil }
      try await socket.send(Self.connect)
      #expect(try await Self.frame("ERROR", socket).contains("the server is locked"))
    }
  }

  private static func frame(_ command: String, _ socket: PusherSocket) async throws -> String {
    try await socket.wait(command) { list in
      for case .text(let text) in list where text.hasPrefix(command + "\n") { return text }
      return nil
    }
  }

  // MARK: - Connections that others can read

  @Test func `credentials over a connection that others can read are refused, and not checked`()
    async throws
  {
    try await Self.run { server in
      let count = try #require(server.server.gate.home).logins.derivationCount
      let headers: HTTPHeaders = [
        "Authorization": "Basic " + Data("ana:right password".utf8).base64EncodedString(),
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      ]
      for target in ["/app/\(server.closed.subscribe)?protocol=7", "/stomp/closed"] {
        let response = try await server.answer(
          HTTPRequest(
            method: "GET", target: Array(target.utf8), headers: headers, isProtected: false))
        #expect(response?.status == 403 && response?.challenges.isEmpty == true)
      }
      #expect(try #require(server.server.gate.home).logins.derivationCount == count)
    }
  }
}

extension ServerFixture {
  /// The answer to a request as if it came in this way; nil if it opens a WebSocket.
  func answer(_ request: HTTPRequest) async throws -> HTTPResponse? {
    let gate = server.gate
    let reply = await withCheckedContinuation { continuation in
      let exchange = HTTPExchange(request, on: MultiThreadedEventLoopGroup.singleton.any()) {
        continuation.resume(returning: $0)
      }
      if !STOMPService(gate, ServerOperations(logger: server.configuration.logger)).answers(
        exchange)
      {
        _ = PusherService(gate).answers(exchange)
      }
    }
    return if case .response(let response) = reply { response } else { nil }
  }
}
