import Testing
import TestSupport
import VaultCrypto

@testable import MessagingClient

/// The client of Pusher's protocol and what Pusher's own service says: `Fixtures/originals/pusher`.
@Suite(.timeLimit(.minutes(10))) struct PusherOriginalTests {
  private static func client(
    _ url: String, _ log: RecordingLog = RecordingLog()
  ) throws -> PusherClient {
    var configuration = PusherConfiguration(
      server: url, key: "key",
      authorizer: SecretKeyAuthorizer(key: "key", secretKey: SharedSecret(secret("sec"))) { _ in
        #"{"user_id":"anna","user_info":{"name":"Anna"}}"#
      })
    configuration.backoff = Backoff(first: .milliseconds(20), maximum: .milliseconds(20))
    configuration.logger = log.logger
    return try PusherClient(configuration)
  }

  private static func text(_ event: PusherEvent) throws -> String {
    switch event {
    case .message(let message):
      "\(message.name) \(message.userID ?? "-") "
        + String(decoding: try message.content.get(), as: UTF8.self)
    case .memberAdded(let member): "added \(member.userID) \(member.info ?? "-")"
    case .memberRemoved(let userID): "removed \(userID)"
    case .cacheMiss: "cache miss"
    case .status(let status): "\(status)"
    }
  }

  private static func texts(_ count: Int, of subscription: PusherSubscription) async throws
    -> [String]
  {
    var texts: [String] = []
    for try await event in subscription {
      texts.append(try text(event))
      if texts.count == count { break }
    }
    return texts
  }

  @Test(arguments: [
    (
      "session", "orders",
      ["subscribed", #"new - {"item":"Bücher"}"#, "note - plain text", "last - 3"]
    ),
    (
      "presence", "presence-room",
      [
        "subscribed", #"added carl {"name":"Carl"}"#, #"client-typing carl {"on":true}"#,
        "removed 2",
      ]
    ),
    ("cache", "cache-orders", ["subscribed", "cache miss"]),
  ])
  func `what Pusher says on a connection comes in its order`(
    transcript: String, channel: String, wanted: [String]
  ) async throws {
    try await PusherTranscript.play([transcript]) { server in
      let client = try Self.client(server.url)
      let subscription = try await client.subscribe(to: channel)
      #expect(try await Self.texts(wanted.count, of: subscription) == wanted)
      if transcript == "presence" {
        #expect(subscription.userID == "anna")
        #expect(subscription.members.map(\.userID) == ["anna", "carl"])
      }
      #expect(server.connectionCount == 1)
      await client.close()
    }
  }

  @Test func `an unknown key is final, with the reason, and is not tried again`() async throws {
    let log = RecordingLog()
    try await PusherTranscript.play(["unknown-key"]) { server in
      let client = try Self.client(server.url, log)
      let error = await #expect(throws: MessagingClientError.self) {
        try await client.subscribe(to: "orders")
      }
      #expect(error?.code == .refused)
      #expect(error?.message.contains("(4001): App key key not in this cluster.") == true)
      await client.close()
      #expect(log.lines.contains { $0.message == "gave up" })
      #expect(!log.lines.contains { $0.message.hasSuffix("trying again") })
      #expect(server.connectionCount == 1)
    }
  }

  /// What Pusher says of the end, and whether the client connects again without a wait.
  @Test(arguments: [
    ("over-capacity", false), ("reconnect", true), ("no-pong", true), ("error-without-end", true),
  ])
  func `a connection that Pusher ends is made again, immediately or after a wait`(
    transcript: String, isImmediate: Bool
  ) async throws {
    let log = RecordingLog()
    try await PusherTranscript.play([transcript, "session"]) { server in
      let client = try Self.client(server.url, log)
      let subscription = try await client.subscribe(to: "orders")
      let events = try await Self.texts(transcript == "error-without-end" ? 4 : 3, of: subscription)
      #expect(
        events.filter { !$0.hasPrefix("new") } == ["subscribed", "disconnected", "subscribed"])
      #expect(log.lines.contains { $0.message.hasPrefix("waiting") } == !isImmediate)
      #expect(server.connectionCount == 2)
      await client.close()
    }
  }

  @Test(arguments: [
    (
      "401 Unauthorized", "Invalid signature: you should have sent HmacSHA256Hex(\"POST\\n…\")\n",
      MessagingClientError.Code.unauthenticated
    ),
    (
      "413 Request Entity Too Large",
      "The data content of this event exceeds the allowed maximum (10240 bytes).\n", .refused
    ),
    ("403 Forbidden", "App disabled\n", .forbidden), ("404 Not Found", "Unknown app\n", .refused),
    ("400 Bad Request", "Cannot specify more than 100 channels\n", .refused),
    ("429 Too Many Requests", "Rate limit exceeded\n", .busy),
  ])
  func `a refusal of Pusher's HTTP API has its text`(
    status: String, text: String, code: MessagingClientError.Code
  ) async throws {
    try await HostileServer.run { peer in
      while peer.request() != nil {
        peer.send(answer(status, ["Content-Type: text/plain; charset=utf-8"], text))
      }
    } _: { server in
      let publisher = try Self.publisher(server.url)
      let error = await #expect(throws: MessagingClientError.self) {
        try await publisher.trigger("new", data: "1", on: ["orders"])
      }
      #expect(error?.code == code)
      #expect(error?.status.map { status.hasPrefix("\($0) ") } == true)
      #expect(error?.message.contains(text.prefix(11)) == true)
    }
  }

  @Test func `an event that Pusher has taken is published`() async throws {
    try await HostileServer.run { peer in
      while let request = peer.request() {
        #expect(request.line == "POST /apps/7/events")
        #expect(request.body == #"{"name":"new","data":"1","channels":["orders"]}"#)
        peer.send(answer("200 OK", ["Content-Type: application/json"], "{}"))
      }
    } _: { server in
      try await Self.publisher(server.url).trigger("new", data: "1", on: ["orders"])
    }
  }

  static func publisher(_ url: String) throws -> PusherPublisher {
    try PusherPublisher(
      server: url, applicationID: "7", key: "key", secretKey: SharedSecret(secret("sec")),
      backoff: Backoff(first: .milliseconds(5), maximum: .milliseconds(10)))
  }
}
