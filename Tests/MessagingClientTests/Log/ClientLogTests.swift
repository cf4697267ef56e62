import Foundation
import Logging
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// What clients write to their log, and that no credential and no payload is in it.
@Suite(.serialized, .timeLimit(.minutes(10))) struct ClientLogTests: STOMPClientChecks {
  private static let user = "user-of-anna"
  private static let password = "hunter2-hunter2"
  private static let payload = "payload-two-books"
  private let log = RecordingLog()

  private static var challenges: ClientChallenges {
    MessagingClientTests.challenges { _ in (user, password) }
  }

  private func check(
    _ secrets: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for secret in secrets + [Self.user, Self.password, Self.payload] {
      #expect(log.lines(with: secret).isEmpty, "\(secret)", sourceLocation: sourceLocation)
    }
    // The credentials of Basic.
    let pair = Data("\(Self.user):\(Self.password)".utf8).base64EncodedString()
    #expect(log.lines(with: pair).isEmpty, sourceLocation: sourceLocation)
    let text = log.lines.map(\.description).joined()
    #expect(
      text.unicodeScalars.allSatisfy { $0.value >= 0x20 }, "not escaped",
      sourceLocation: sourceLocation)
  }

  /// What a client has sent under a name, such as a signature.
  private static func sent(_ name: String, _ server: HostileServer) -> [String] {
    server.text.split(separator: name).dropFirst().map { rest in
      String(rest.prefix { !"& \r\"".contains($0) })
    }
  }

  @Test func `a recorder finds a secret in each form`() {
    for form in [
      "s3cret-value", "s3cret%2Dvalue", "czNjcmV0LXZhbHVl", "dTpzM2NyZXQtdmFsdWU=",
      "7333637265742d76616c7565", "115, 51, 99, 114, 101, 116, 45, 118, 97, 108, 117, 101",
    ] {
      log.logger.info("\(form)")
      log.logger.info("text", metadata: ["name": "a\(form)"])
    }
    #expect(log.lines(with: "s3cret-value").count == 12)
    #expect(log.lines(with: "s4cret-value").isEmpty)
  }

  // MARK: - PubNub

  @Test func `PubNub's client tells what it does, without a secret`() async throws {
    let polls = Mutex(0)
    try await HostileServer.run { peer in
      while let head = peer.head() {
        peer.readBody(head)
        let echo = "{\"message\":\"\(Self.password) \(Self.payload) auth-key-1\"}"
        guard head.contains("Authorization: ") else {
          peer.send(
            answer("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"or\\\"ders\""], echo))
          continue
        }
        guard head.contains("/v2/subscribe/") else {
          peer.send(answer("200 OK", [], "[1,\"\(Self.payload)\",\"17\"]"))
          continue
        }
        let number = polls.withLock { count in
          defer { count += 1 }
          return count
        }
        switch number {
        case 2: return
        case 3: peer.send(answer("503 Unavailable", [], echo))
        case 5...: peer.send(answer("403 Forbidden", [], echo))
        default:
          let message = "{\"c\":\"a\",\"d\":\"\(Self.payload)\",\"p\":{\"t\":\"1\(number)\"}}"
          peer.send(
            answer("200 OK", [], "{\"t\":{\"t\":\"1\(number)\",\"r\":1},\"m\":[\(message)]}"))
        }
      }
    } _: { server in
      var configuration = PubNubConfiguration(
        server: server.url, subscribeKey: "sub", publishKey: "pub-key-1", userID: "user-id-1")
      configuration.authKey = SharedSecret(secret("auth-key-1"))
      configuration.secretKey = SharedSecret(secret("secret-key-1"))
      configuration.challenges = Self.challenges
      configuration.backoff = Backoff(first: .milliseconds(1), maximum: .milliseconds(2))
      configuration.logger = log.logger
      let client = try PubNubClient(configuration)
      try await client.publish(json: Array("\"\(Self.payload)\"".utf8), to: "a")
      try await client.signal(json: Array("\"\(Self.payload)\"".utf8), to: "a")
      try await client.revokeToken(secret("token-of-version-3"))
      let subscription = try client.subscribe(to: ["a"], groups: ["g\u{202E}"])
      let error = await failure { for try await _ in subscription {} }
      #expect(error?.code == .forbidden)
      try? await subscription.unsubscribe()
      let signatures = Self.sent("signature=v2.", server)
      #expect(signatures.count > 5)
      check(
        ["auth-key-1", "secret-key-1", "token-of-version-3", "pub-key-1", "user-id-1"] + signatures)
    }
    #expect(
      log.summaries() == [
        "debug connecting", "debug answered a challenge scheme=Basic realm=or\\\"ders",
        "info connected", "debug subscribed channel=a,g\\u{202e}",
        "warning the connection failed: trying again code=outcomeUnknown",
        "debug waiting before the next attempt", "debug connecting",
        "debug the connection failed: trying again code=busy",
        "debug waiting before the next attempt", "info connected",
        "error gave up code=forbidden", "debug unsubscribed channel=a,g\\u{202e}",
      ])
    let traces = log.lines.filter { $0.level == .trace }
      .map { $0.summary(["request", "status", "bytes"]) }
    #expect(
      traces.prefix(8) == [
        "trace sent a request request=POST publish bytes=19",
        "trace received an answer status=401 bytes=58",
        "trace sent a request request=POST publish bytes=19",
        "trace received an answer status=200 bytes=28",
        "trace sent a request request=GET signal bytes=0",
        "trace received an answer status=200 bytes=28",
        "trace sent a request request=DELETE pam bytes=0",
        "trace received an answer status=200 bytes=28",
      ])
    #expect(log.lines.allSatisfy { $0.metadata["client"] == "pubnub" })
    #expect(log.lines.allSatisfy { $0.metadata["server"]?.hasPrefix("http://127.0.0.1:") == true })
  }

  @Test func `a refused password is a warning`() async throws {
    let origin = try Origin("https://example.com")
    let authenticator = Authenticator(
      connectionTo: origin, handler: Self.challenges.handler, challengeGuard: ChallengeGuard(),
      logger: log.logger)
    let location = try Location(
      "https://\(Self.user):\(Self.password)@example.com/?\(Self.password)")
    let realm = "Basic realm=\"a\u{202E}b\""
    _ = try await authenticator.answer([realm], at: location)
    _ = try? await authenticator.answer([realm], at: location)
    check([])
    #expect(
      log.summaries() == [
        "debug answered a challenge scheme=Basic realm=a\\u{202e}b",
        "warning the server refused the credentials",
      ])
    #expect(log.lines.first?.metadata["server"] == "https://example.com")
  }

  @Test func `a publication whose answer is lost is a warning`() async throws {
    try await HostileServer.run { peer in
      _ = peer.head()
    } _: { server in
      let publisher = try PusherPublisher(
        server: server.url, applicationID: "1", key: "key",
        secretKey: SharedSecret(secret("secret-key-1")),
        backoff: Backoff(first: .milliseconds(1), maximum: .milliseconds(1)), logger: log.logger)
      let error = await failure { try await publisher.trigger("e", data: Self.payload, on: ["c"]) }
      #expect(error?.code == .outcomeUnknown)
      check(["secret-key-1"] + Self.sent("auth_signature=", server))
    }
    #expect(log.summaries(from: .info) == ["warning the outcome of a request is not known"])
    #expect(
      log.lines.contains { $0.summary(["request"]) == "trace sent a request request=POST events" })
  }

  // MARK: - Pusher

  @Test func `Pusher's client tells what it does, without a secret`() async throws {
    let endpoint = try HostileServer { peer in
      while let head = peer.head() {
        peer.readBody(head)
        peer.send(
          answer(
            "200 OK", [], #"{"auth":"k:signature-1","channel_data":"{\"user_id\":\"anna-1\"}"}"#))
      }
    }
    defer { endpoint.stop() }
    let connections = Mutex(0)
    try await HostileServer.run { peer in
      while let head = peer.head() {
        guard head.contains("Authorization: "),
          let handshake = try? HostileWebSocket.handshake(head)
        else {
          peer.send(answer("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""]))
          continue
        }
        let number = connections.withLock { count in
          defer { count += 1 }
          return count
        }
        peer.send(
          handshake
            + HostileWebSocket.text(
              #"{"event":"pusher:connection_established","data":{"socket_id":"1.2"}}"#))
        peer.readFrame()
        let frames = [
          #"{"event":"pusher_internal:subscription_succeeded","channel":"presence-a","data":"{}"}"#,
          #"{"event":"\#(Self.payload)","channel":"presence-a","data":"\#(Self.payload)"}"#,
        ]
        peer.send(frames.flatMap(HostileWebSocket.text))
        // The client's event.
        if number == 0 { peer.readFrame() }
        let code: UInt16 = number == 0 ? 4200 : 4001
        peer.send(HostileWebSocket.close(code, "\(Self.password) \(Self.payload)"))
        // The client's close frame.
        return peer.readFrame()
      }
    } _: { server in
      var configuration = PusherConfiguration(
        server: server.url, key: "key-1",
        authorizer: try ServerChannelAuthorizer(
          url: "\(endpoint.url)/auth/path-1?token=token-1", logger: log.logger
        ) { _, fields in
          fields.secretHeaders["Cookie"] = SharedSecret(secret("session-1"))
          fields.parameters["csrf"] = "csrf-1"
        })
      configuration.challenges = Self.challenges
      configuration.backoff = Backoff(first: .milliseconds(1), maximum: .milliseconds(2))
      configuration.logger = log.logger
      let client = try PusherClient(configuration)
      let subscription = try await client.subscribe(to: "presence-a")
      try await subscription.trigger(
        "client-\(Self.payload)", json: Array("\"\(Self.payload)\"".utf8))
      let error = await failure { for try await _ in subscription {} }
      #expect(error?.code == .refused)
      await client.close()
      check([
        "signature-1", "anna-1", "key-1", "path-1", "token-1", "session-1", "csrf-1",
      ])
    }
    let lines = log.lines.filter { $0.metadata["client"] == "pusher" }
    let opened = [
      "info connected", "debug fetched an authorization channel=presence-a",
      "debug subscribed channel=presence-a",
    ]
    #expect(
      lines.filter { $0.level > .trace }.map { $0.summary(["channel", "scheme", "realm", "code"]) }
        == ["debug connecting", "debug answered a challenge scheme=Basic realm=r"] + opened + [
          "warning the server ends the connection code=4200",
          "warning the connection failed: trying again code=unavailable", "debug connecting",
        ] + opened + [
          "warning the server ends the connection code=4001", "error gave up code=refused",
          "error gave up channel=presence-a code=refused",
        ])
    let frames = lines.map { $0.summary(["frame"]) }
    for frame in [
      "sent a frame frame=pusher:subscribe", "sent a frame frame=client-event",
      "received a frame frame=connection_established", "received a frame frame=event",
      "received a frame frame=subscription_succeeded",
    ] {
      #expect(frames.contains("trace \(frame)"), "\(frame)")
    }
    #expect(
      log.lines.contains {
        $0.metadata["client"] == "pusher-authorizer"
          && $0.summary(["request"]) == "trace sent a request request=POST auth"
      })
  }

  // MARK: - STOMP

  @Test func `STOMP's client tells what it does, without a secret`() async throws {
    let server = MemoryServer()
    let client = try server.client { [log] in
      $0.logger = log.logger
      $0.login = .handler(
        ClosureLoginHandler { request in
          LoginCredentials(
            user: secret(Self.user), password: secret("\(Self.password)\(request.refusalCount)"))
        })
    }
    async let made = client.subscribe(to: "/queue/a\u{1B}")
    let refused = try await server.next()
    #expect(try await refused.frame("CONNECT")["passcode"] == "\(Self.password)0")
    refused.write("ERROR\nmessage:\(Self.password) \(Self.payload)\ndatavault-status:403\n\n\0")
    let connection = try await server.accept("datavault-deduplication-window:3600\n")
    let frame = try await connection.answer("SUBSCRIBE")
    let subscription = try await made
    connection.message(Self.payload, "id-1", to: frame, "\(Self.payload):\(Self.payload)\n")
    async let sent: Void = client.send(
      Array(Self.payload.utf8), to: "/topic/b", headers: ["name": Self.payload])
    _ = try await connection.frame("SEND")
    connection.drop()
    let next = try await server.accept("datavault-deduplication-window:3600\n")
    try await next.answer("SUBSCRIBE")
    try await next.answer("SEND")
    try await sent
    var iterator = subscription.makeAsyncIterator()
    next.write("ERROR\nmessage:\(Self.password) \(Self.payload)\ndatavault-status:503\n\n\0")
    let last = try await server.accept()
    try await last.answer("SUBSCRIBE")
    last.message(Self.payload, "id-2", to: frame)
    while try text(await iterator.next()) == nil {}
    async let closed: Void = client.close()
    try await last.answer("DISCONNECT")
    await closed
    check(["\(Self.password)0", "\(Self.password)1"])
    let lines = log.summaries().filter { !$0.hasPrefix("debug waiting") }
    #expect(
      lines == [
        "warning the server ends the connection code=403",
        "warning the server refused the credentials", "info connected",
        "debug subscribed channel=/queue/a\\u{1b}",
        "warning the connection failed: trying again code=unavailable",
        "warning the outcome of a request is not known", "info connected",
        "debug subscribed channel=/queue/a\\u{1b}",
        "warning the server ends the connection code=503",
        "debug the connection failed: trying again code=busy",
        "info connected", "debug subscribed channel=/queue/a\\u{1b}", "info disconnected",
      ])
    let frames = log.lines.filter { $0.level == .trace }.map { $0.summary(["frame"]) }
    for frame in [
      "sent a frame frame=CONNECT", "sent a frame frame=SUBSCRIBE", "sent a frame frame=SEND",
      "received a frame frame=CONNECTED", "received a frame frame=RECEIPT",
      "received a frame frame=MESSAGE", "received a frame frame=ERROR",
    ] {
      #expect(frames.contains("trace \(frame)"), "\(frame)")
    }
  }

  // MARK: - The page

  @Test func `the page on logs has each event with its level`() throws {
    let source = try Repository.text("Sources/MessagingClient/Transport/ClientLog.swift")
    let page = try Repository.text("docs/how-to/display-client-logs.md")
    let events = source.matches(of: /logger\.(trace|debug|info|warning|error)\(\s*"([^"]+)"/)
    #expect(events.count == 16)
    for event in events {
      #expect(page.contains("| \(event.1) | `\(event.2)` |"), "\(event.2)")
    }
    #expect(page.contains("| warning | `the connection failed: trying again` |"))
  }
}

extension HostileServer.Peer {
  /// Reads the body that belongs to a head.
  fileprivate func readBody(_ head: String) {
    let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
    skip(length.flatMap { Int($0.dropFirst(16)) } ?? 0)
  }

  /// Reads a masked frame of a WebSocket, of at most 64 KiB.
  fileprivate func readFrame() {
    skip(1)
    var length = Int(read(1).first ?? 0) & 0x7F
    if length == 126 { length = Int(read(1).first ?? 0) << 8 + Int(read(1).first ?? 0) }
    skip(4 + length)
  }

  private func skip(_ count: Int) {
    var rest = count
    while rest > 0 {
      let got = read(rest).count
      guard got > 0 else { return }
      rest -= got
    }
  }
}
