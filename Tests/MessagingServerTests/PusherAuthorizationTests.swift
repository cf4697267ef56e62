import AccessControl
import ApplicationStore
import DataVault
import Foundation
import MessagingQueue
import NIOHTTP1
import TestSupport
import Testing

@testable import MessagingServer

/// The authorization endpoint for applications whose users are this server's.
@Suite struct PusherAuthorizationTests {
  private static let right = "ana:right password"
  private static let challenges = Challenge.all(realm: "closed").map(\.field)

  /// A server whose closed application has the user `ana`, who can read some channels and write one.
  private static func run(
    _ configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (ServerFixture) async throws -> Void
  ) async throws {
    try await ServerFixture.run(configure) { server in
      let ana = GrantHolder.user(try Name("ana"))
      try await server.grant([.read, .write], "private-c", ana)
      for channel in ["presence-c", "private-a=b;c", "private-@,.", "private-encrypted-c"] {
        try await server.grant(.read, channel, ana)
      }
      try await server.put(user: "ana", "right password")
      try await body(server)
    }
  }

  /// Posts a form to the endpoint.
  private static func post(
    _ server: ServerFixture, _ form: String, user: String? = right, headers: [String] = [],
    key: String? = nil
  ) async throws -> (status: Int, challenges: [String], text: String, head: String) {
    try await ServerFixture.curl(
      "\(server.url)/pusher/auth/\(key ?? server.closed.subscribe)", user: user, headers: headers,
      ["--data-raw", form])
  }

  private struct Answer: Decodable {
    let auth: String
    let channelData: String?

    enum CodingKeys: String, CodingKey {
      case auth
      case channelData = "channel_data"
    }
  }

  /// What the endpoint answers for a connection.
  private static func authorize(
    _ server: ServerFixture, _ socket: PusherSocket, _ channel: String, user: String? = right,
    headers: [String] = []
  ) async throws -> Answer {
    let form = "socket_id=\(try socket.socketID)&channel_name=\(channel)"
    let answer = try await post(server, form, user: user, headers: headers)
    try #require(answer.status == 200, "\(answer)")
    return try JSONDecoder().decode(Answer.self, from: Data(answer.text.utf8))
  }

  private static func subscribes(
    _ socket: PusherSocket, _ channel: String, _ answer: Answer
  ) async throws {
    try await socket.subscribe(channel, auth: answer.auth, data: answer.channelData)
    _ = try await socket.next("pusher_internal:subscription_succeeded", on: channel)
  }

  private static func refusal(
    _ socket: PusherSocket, _ channel: String, auth: String, data: String? = nil
  ) async throws -> String {
    try await socket.subscribe(channel, auth: auth, data: data)
    return try await socket.next("pusher:subscription_error", on: channel)
  }

  // MARK: - Stock clients

  @Test(.enabled(if: PusherClient.python != nil, "pysher and pusher are not installed"))
  func `pysher is authorized by this endpoint, and by a handshake of its WebSocket library`()
    async throws
  {
    try await Self.run { server in
      let token = try await server.token(for: "private-t")
      try await PusherClient.check("endpoint", server, server.closed, "token=\(token)")
    }
  }

  @Test func `the form of each stock client is read`() async throws {
    try await Self.run { server in
      let application = try #require(
        server.server.gate.home?.directory.application(server.closed.record.id))
      let ana = try Name("ana")
      let password = try #require(
        server.server.gate.home?.directory.verifier(of: ana, of: application.id)?.version)
      // In the order and the spelling of pysher, pusher-js, libPusher and pusher-websocket-swift.
      for (form, channel) in [
        ("channel_name=private-%40%2C.&socket_id=1.42", "private-@,."),
        ("socket_id=1.42&channel_name=private-c&extra=1%202", "private-c"),
        ("channel_name=private-a=b;c&socket_id=1.42", "private-a=b;c"),
        ("socket_id=1.42&channel_name=private-c", "private-c"),
      ] {
        // The last one names no content type.
        let answer = try await Self.post(server, form, headers: ["Content-Type:"])
        #expect(answer.status == 200)
        #expect(answer.head.contains("Content-Type: application/json"))
        let expected = try PusherUserSignature.sign(
          ana, password: password, socketID: "1.42", channel: ChannelName(channel),
          under: application.application)
        #expect(answer.text == #"{"auth":"\#(expected)"}"#)
      }
    }
  }

  @Test func `web pages of any origin can ask, and see the challenges`() async throws {
    try await Self.run { server in
      let preflight = try await ServerFixture.curl(
        "\(server.url)/pusher/auth/\(server.closed.subscribe)",
        headers: ["Origin: https://a.example", "Access-Control-Request-Method: POST"],
        ["-X", "OPTIONS"])
      #expect(preflight.status == 200)
      #expect(preflight.head.contains("Access-Control-Allow-Origin: *"))
      #expect(preflight.head.contains("Authorization"))
      let refused = try await Self.post(server, "socket_id=1.2&channel_name=private-c", user: nil)
      #expect(refused.status == 401)
      #expect(refused.head.contains("Access-Control-Allow-Origin: *"))
      #expect(refused.head.contains("Access-Control-Expose-Headers: WWW-Authenticate"))
    }
  }

  // MARK: - What is authorized

  @Test func `a user who is authorized has the user's rights, and loses them with the grant`()
    async throws
  {
    try await Self.run { server in
      let socket = try await PusherSocket.connect(server, server.closed)
      let answer = try await Self.authorize(server, socket, "private-c")
      #expect(answer.channelData == nil)
      try await Self.subscribes(socket, "private-c", answer)
      let other = try await PusherSocket.connect(server, server.closed)
      try await Self.subscribes(
        other, "private-c", Self.authorize(server, other, "private-c"))
      try await socket.send(#"{"event":"client-x","channel":"private-c","data":"1"}"#)
      _ = try await other.next("client-x", on: "private-c")
      try await server.grant([], "private-c", .user(Name("ana")))
      let ended = try await socket.next("pusher:subscription_error", on: "private-c")
      #expect(ended.contains(#"\"status\":403"#))
      // The answer of before does not bring it back, and the connection stays.
      let again = try await Self.refusal(other, "private-c", auth: answer.auth)
      #expect(again.contains(#"\"status\":40"#))
      try await socket.send(#"{"event":"pusher:ping"}"#)
      _ = try await socket.next("pusher:pong")
    }
  }

  @Test(arguments: [true, false])
  func `a removed user and a new password end what was authorized, for good`(
    removes: Bool
  ) async throws {
    try await Self.run { server in
      let socket = try await PusherSocket.connect(server, server.closed)
      let answer = try await Self.authorize(server, socket, "private-c")
      try await Self.subscribes(socket, "private-c", answer)
      let unused = try await Self.authorize(server, socket, "presence-c")
      if removes {
        try await server.store.removeUser(Name("ana"), of: server.closed.record.id)
      } else {
        try await server.put(user: "ana", "new password")
      }
      let ended = try await socket.next("pusher:subscription_error", on: "private-c")
      #expect(ended.contains(removes ? "has no such user" : "has another password now"))
      if removes {
        // A later user of the same name is another one.
        try await server.put(user: "ana", "right password")
      }
      let late = try await Self.refusal(
        socket, "presence-c", auth: unused.auth, data: unused.channelData)
      #expect(late.contains(#"\"status\":401"#))
    }
  }

  @Test func `what is authorized for one connection and channel is good for no other`()
    async throws
  {
    try await Self.run { server in
      let (one, two) = (
        try await PusherSocket.connect(server, server.closed),
        try await PusherSocket.connect(server, server.closed)
      )
      let answer = try await Self.authorize(server, one, "private-c")
      for (socket, channel) in [(two, "private-c"), (one, "private-@,.")] {
        let refused = try await Self.refusal(socket, channel, auth: answer.auth)
        #expect(refused.contains(#"\"status\":401"#), "\(channel)")
      }
      let stranger = try await PusherSocket.connect(server, server.open)
      let refused = try await Self.refusal(stranger, "private-c", auth: answer.auth)
      #expect(refused.contains(#"\"status\":401"#))
    }
  }

  @Test func `a user is present under the name that the endpoint has checked`() async throws {
    try await Self.run { server in
      let socket = try await PusherSocket.connect(server, server.closed)
      let answer = try await Self.authorize(server, socket, "presence-c")
      #expect(answer.channelData == #"{"user_id":"ana"}"#)
      for data in [#"{"user_id":"bob"}"#, #"{"user_id":"ana "}"#] {
        let forged = try await Self.refusal(socket, "presence-c", auth: answer.auth, data: data)
        #expect(forged.contains(#"\"status\":403"#))
      }
      try await Self.subscribes(socket, "presence-c", answer)
    }
  }

  @Test func `a token is its own authorization, and ends with its revocation`() async throws {
    try await Self.run { server in
      let socket = try await PusherSocket.connect(server, server.closed)
      let token = try await server.token(for: "private-t")
      let headers = ["Authorization: Application Token \(token)"]
      let answer = try await Self.authorize(
        server, socket, "private-t", user: nil, headers: headers)
      #expect(answer.auth == token)
      try await Self.subscribes(socket, "private-t", answer)
      let nameless = try await Self.post(
        server, "socket_id=1.2&channel_name=presence-t", user: nil,
        headers: ["Authorization: Application Token \(try await server.token(for: "presence-t"))"])
      #expect(nameless.status == 403 && nameless.text.contains("the token names no user"))
      let named = try await server.token(for: "presence-t", userID: "u")
      let present = try await Self.authorize(
        server, socket, "presence-t", user: nil,
        headers: ["Authorization: Application Token \(named)"])
      #expect(present.channelData == #"{"user_id":"u"}"#)
      try await Self.subscribes(socket, "presence-t", present)
      try await server.revoke(token)
      let ended = try await socket.next("pusher:subscription_error", on: "private-t")
      #expect(ended.contains("the token was revoked"))
      let revoked = try await Self.post(
        server, "socket_id=1.2&channel_name=private-t", user: nil, headers: headers)
      #expect(revoked.status == 401 && revoked.challenges == Self.challenges)
    }
  }

  // MARK: - Refusals

  private static let refusedForms = [
    ("", 400, "socket_id"), ("channel_name=private-c", 400, "socket_id"),
    ("socket_id=1.2:private-c&channel_name=private-c", 400, "socket_id"),
    ("socket_id=1.2%3Aprivate-c&channel_name=private-c", 400, "socket_id"),
    ("socket_id=1&channel_name=private-c", 400, "socket_id"),
    ("socket_id=1.2&socket_id=1.3&channel_name=private-c", 400, "socket_id"),
    ("socket_id=1.2", 400, "channel_name"),
    ("socket_id=1.2&channel_name=private-c&channel_name=private-d", 400, "channel_name"),
    ("socket_id=1.2&channel_name=private-c:x", 400, "channel_name"),
    ("socket_id=1.2&channel_name=private-c%00", 400, "channel_name"),
    ("socket_id=1.2&channel_name=private-c%FF", 400, "channel_name"),
    ("socket_id=1.2&channel_name=c", 400, "needs no authorization"),
    ("socket_id=1.2&channel_name=private-encrypted-c", 403, "keys of encrypted channels"),
    ("socket_id=1.2&channel_name=private-d", 403, "nothing else gives this caller read"),
  ]

  @Test func `a form that names no channel to authorize is refused with the reason`() async throws {
    try await Self.run { server in
      for (form, status, reason) in Self.refusedForms {
        let answer = try await Self.post(server, form)
        #expect(answer.status == status && answer.challenges.isEmpty)
        #expect(answer.text.hasPrefix(#"{"error":""#) && answer.text.contains(reason), "\(answer)")
      }
    }
  }

  @Test func `credentials that are missing, wrong or another application's are challenged`()
    async throws
  {
    try await Self.run { server in
      let form = "socket_id=1.2&channel_name=private-c"
      for (user, headers) in [
        (nil, []), ("ana:wrong password", []), ("missing:right password", []),
        (nil, ["Authorization: Bearer x"]), (nil, ["Authorization: Application Token x"]),
      ] as [(String?, [String])] {
        let answer = try await Self.post(server, form, user: user, headers: headers)
        #expect(answer.status == 401 && answer.challenges == Self.challenges)
        #expect(answer.text.contains("credentials are"))
      }
      // The user is none of the other application, which asks for what it would take.
      let other = try await Self.post(server, form, key: server.open.subscribe)
      #expect(other.status == 401)
      #expect(other.challenges == [#"Application Token realm="shop""#])
      let unknown = try await Self.post(server, form, key: "none")
      #expect(unknown.status == 404 && unknown.text.contains("no application has this key"))
      let got = try await ServerFixture.curl(
        "\(server.url)/pusher/auth/\(server.closed.subscribe)?\(form)", user: Self.right)
      #expect(got.status == 404)
    }
  }

  @Test func `guesses wait, and a locked vault authorizes no one`() async throws {
    try await Self.run({ $0.engine.unlockTimeout = .seconds(60) }) { server in
      let form = "socket_id=1.2&channel_name=private-c"
      // Each wait is longer than the last one, so that a slow machine meets one too.
      var waiting = ""
      for number in 0..<12 where !waiting.hasPrefix("HTTP/1.1 429 ") {
        waiting = try await Self.post(server, form, user: "ana:wrong \(number)").head
      }
      #expect(waiting.hasPrefix("HTTP/1.1 429 "))
      #expect(waiting.contains("Retry-After: "))
      await server.vault.lock()
      try await eventually { server.server.gate.home == nil }
      let locked = try await Self.post(server, form)
      #expect(locked.status == 503 && locked.text == #"{"error":"the server is locked"}"#)
      #expect(locked.head.contains("Retry-After: "))
    }
  }

  @Test func `a connection that others can read is refused, with and without credentials`()
    async throws
  {
    try await Self.run { server in
      for headers: HTTPHeaders in [
        [:], ["Authorization": "Basic " + Data(Self.right.utf8).base64EncodedString()],
      ] {
        let response = try await server.answer(
          HTTPRequest(
            method: "POST", target: Array("/pusher/auth/\(server.closed.subscribe)".utf8),
            body: Array("socket_id=1.2&channel_name=private-c".utf8), headers: headers,
            isProtected: false))
        #expect(response?.status == 403 && response?.challenges.isEmpty == true)
      }
      #expect(server.server.gate.home?.logins.derivationCount == 0)
    }
  }
}
